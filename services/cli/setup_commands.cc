// The commands that set up machines: certificates of a cluster, and the profile of its user.
#include <cstdint>
#include <string>

#include "services/cli/command_tree.h"
#include "services/common/tls/certificate_authority.h"

namespace stagecoach {
namespace {

// The last one is "no user" to the system.
constexpr int64_t kLastUserId = (int64_t{1} << 32) - 2;

void AddCerts(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("certs", "Make the certificates of a cluster, for mutual TLS", RunCerts);
  command
      ->add_option("folder", options.folder,
                   "holds the authority, ca.pem and ca.key, made if neither is there, and gets a "
                   "folder NAME with ca.pem, tls.crt and tls.key for each certificate")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("entries", options.entries,
                   "[ROLE:]NAME[=SAN,SAN...]; ROLE: coordinator, stage, user or operator, by "
                   "default NAME if it is one, operator for client, else stage; SAN: a DNS name, "
                   "an IP address, or a wildcard such as *.stage.svc, beside NAME, localhost and "
                   "127.0.0.1")
      ->type_name("ENTRY")
      ->required();
  command->add_option("--days", options.days, "how long the certificates are valid")
      ->check(CLI::Range(1, CertificateAuthority::kMostDays))
      ->capture_default_str();
  command
      ->add_option("--owner", options.owner,
                   "id of the user who may read the folders NAME, 65532 for the containers; needs "
                   "root; default: you")
      ->type_name("UID")
      ->check(CLI::Range(int64_t{0}, kLastUserId));
}

void AddClusterName(CLI::App* command, std::string* name) {
  command->add_option("name", *name, "a cluster of the profile")->type_name("CLUSTER")->required();
}

void AddConfig(CommandTree& tree) {
  CLI::App* const config =
      tree.Add("config", "Show or change your profile: the clusters that you use", RunConfigShow);
  tree.Add("show", "Show the clusters", RunConfigShow, config);
  const auto [set, options] = tree.Add("set", "Add a cluster, or replace it", RunConfigSet, config);
  set->add_option("name", options.name, "of the cluster; the first one becomes the current one")
      ->type_name("CLUSTER")
      ->required();
  set->add_option("--coordinator", options.coordinator, "its coordinator, host:port")->required();
  set->add_option("--certs", options.certs,
                  "your folder of `stagecoach certs`, with ca.pem, tls.crt and tls.key; or name "
                  "files with --grpc-root-cert and its like, or --token-file")
      ->type_name("DIR");
  const auto [use, used] = tree.Add("use", "Make a cluster the current one", RunConfigUse, config);
  AddClusterName(use, &used);
  const auto [remove, removed] =
      tree.Add("remove", "Take a cluster out of the profile", RunConfigRemove, config);
  AddClusterName(remove, &removed);
}

}  // namespace

void AddSetupCommands(CommandTree& tree) {
  AddCerts(tree);
  AddConfig(tree);
}

}  // namespace stagecoach
