// The commands on the profile.
#include <filesystem>
#include <system_error>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/text.h"
#include "services/cli/profile/profile.h"
#include "services/common/tls/tls_check.h"

namespace stagecoach {
namespace {

// Another folder is another file.
std::string Absolute(const std::string& path) {
  if (path.empty()) return "";
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).lexically_normal();
  while (absolute.size() > 1 && absolute.ends_with('/')) absolute.pop_back();
  return absolute;
}

// "certificate /certs/ann/tls.crt", "token file /home/ann/token", "no TLS".
std::string CredentialsOf(const ProfileCluster& cluster) {
  const TlsFlags tls = cluster.tls();
  if (!tls.use_ssl) return "no TLS";
  return ShownName(tls.token_file.empty() ? absl::StrCat("certificate ", tls.server_cert)
                                          : absl::StrCat("token file ", tls.token_file));
}

std::string JsonOf(const std::string& name, const ProfileCluster& cluster, bool is_current) {
  const TlsFlags tls = cluster.tls();
  return absl::StrCat("{\"name\":", JsonText(name), ",\"current\":", is_current ? "true" : "false",
                      ",\"coordinator\":", JsonText(cluster.coordinator),
                      ",\"tls\":", tls.use_ssl ? "true" : "false",
                      ",\"ca\":", JsonText(tls.root_cert), ",\"cert\":", JsonText(tls.server_cert),
                      ",\"key\":", JsonText(tls.server_key),
                      ",\"token_file\":", JsonText(tls.token_file), "}");
}

std::string ShowText(const Profile& profile, OutputFormat output) {
  Table table({"", "CLUSTER", "COORDINATOR", "CREDENTIALS"});
  std::vector<std::string> objects;
  for (const auto& [name, cluster] : profile.clusters) {
    const bool is_current = name == profile.current;
    table.Add(
        {is_current ? "*" : "", name, ShownName(cluster.coordinator), CredentialsOf(cluster)});
    objects.push_back(JsonOf(name, cluster, is_current));
  }
  switch (output) {
    case OutputFormat::kTable:
      return profile.clusters.empty() ? "" : table.ToString();
    case OutputFormat::kJson:
      return absl::StrCat("{\"file\":", JsonText(profile.file), ",\"clusters\":[",
                          absl::StrJoin(objects, ","), "]}\n");
    case OutputFormat::kNdjson:
      return objects.empty() ? "" : absl::StrCat(absl::StrJoin(objects, "\n"), "\n");
  }
  return "";
}

// The files are read now: their mistakes are told here, and not at the first job.
absl::StatusOr<ProfileCluster> ClusterOf(const ConfigSetOptions& options,
                                         const ConnectionSettings& flags) {
  ProfileCluster cluster{.coordinator = options.coordinator,
                         .certs = Absolute(options.certs),
                         .ca = Absolute(flags.root_cert),
                         .cert = Absolute(flags.server_cert),
                         .key = Absolute(flags.server_key),
                         .token_file = Absolute(flags.token_file)};
  const std::string place = absl::StrCat("clusters.", options.name);
  RETURN_IF_ERROR(CheckCluster(cluster, place));
  const TlsFlags tls = cluster.tls();
  if (flags.use_ssl.has_value() && *flags.use_ssl != tls.use_ssl) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, tls.use_ssl ? ": --grpc-use-ssl=false with files for TLS; leave out one of them"
                           : ": --grpc-use-ssl needs --certs, or --grpc-root-cert with "
                             "--grpc-server-cert and --grpc-server-key or with --token-file"));
  }
  if (!tls.token_file.empty())
    RETURN_IF_ERROR(CheckTokenFileRights(tls.token_file, place + ".token_file: "));
  if (!tls.use_ssl) return cluster;
  ASSIGN_OR_RETURN(const TlsPems pems, ReadPems(tls));
  RETURN_IF_ERROR(CheckIdentity(tls, pems));
  return cluster;
}

// With a note of what was changed.
int Change(CommandContext& context,
           absl::FunctionRef<absl::StatusOr<std::string>(Profile&)> change) {
  const std::string path = ProfilePath();
  const absl::StatusOr<std::string> note = ChangeProfile(path, change);
  if (!note.ok()) return context.console->Fail(note.status());
  context.console->Note(absl::StrCat(ShownName(path), ": ", *note));
  return kExitSuccess;
}

}  // namespace

int RunConfigShow(CommandContext& context) {
  const absl::StatusOr<Profile> profile = ReadProfile(ProfilePath());
  if (!profile.ok()) return context.console->Fail(profile.status());
  if (profile->clusters.empty()) {
    const std::string file = profile->file.empty() ? "no profile" : ShownName(profile->file);
    context.console->Note(absl::StrCat(file,
                                       ": no cluster; add one with `stagecoach config set NAME "
                                       "--coordinator HOST:8001`"));
  }
  context.console->Print(ShowText(*profile, context.output));
  return kExitSuccess;
}

int RunConfigSet(const ConfigSetOptions& options, CommandContext& context) {
  return Change(context, [&](Profile& profile) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(CheckClusterName(options.name));
    ASSIGN_OR_RETURN(profile.clusters[options.name], ClusterOf(options, context.flags));
    if (profile.current.empty()) profile.current = options.name;
    return absl::StrCat("cluster ", options.name, " is set; the current one is ", profile.current);
  });
}

int RunConfigUse(const std::string& name, CommandContext& context) {
  return Change(context, [&](Profile& profile) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(FindCluster(profile, name, absl::StrCat("config use ", name)).status());
    profile.current = name;
    return absl::StrCat("the current cluster is ", name);
  });
}

int RunConfigRemove(const std::string& name, CommandContext& context) {
  return Change(context, [&](Profile& profile) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(FindCluster(profile, name, absl::StrCat("config remove ", name)).status());
    profile.clusters.erase(name);
    if (profile.current != name) return absl::StrCat("cluster ", name, " is removed");
    profile.current.clear();
    if (profile.clusters.size() == 1) {
      return absl::StrCat("cluster ", name,
                          " is removed, and was the current one; now the only one, ",
                          profile.clusters.begin()->first, ", is");
    }
    return absl::StrCat("cluster ", name,
                        " is removed, and was the current one; choose another "
                        "with `stagecoach config use`");
  });
}

}  // namespace stagecoach
