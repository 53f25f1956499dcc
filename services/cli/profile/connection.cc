#include "services/cli/profile/connection.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

ConnectionSettings SettingsOf(const ProfileCluster& cluster) {
  const TlsFlags tls = cluster.tls();
  return {.address = cluster.coordinator,
          .cluster = "",
          .use_ssl = tls.use_ssl,
          .root_cert = tls.root_cert,
          .server_cert = tls.server_cert,
          .server_key = tls.server_key,
          .token_file = tls.token_file};
}

// Of sources in their order, the first first.
Connection Merge(const std::vector<const ConnectionSettings*>& sources) {
  Connection merged;
  TlsFlags& tls = merged.tls;
  std::optional<bool> use_ssl;
  const auto take = [](const std::string& from, std::string* to) {
    if (to->empty()) *to = from;
  };
  for (const ConnectionSettings* const source : sources) {
    const bool has_certificate = !tls.server_cert.empty() || !tls.server_key.empty();
    const bool has_token = !tls.token_file.empty();
    take(source->address, &merged.address);
    take(source->root_cert, &tls.root_cert);
    if (!has_certificate) take(source->token_file, &tls.token_file);
    if (!has_token) {
      take(source->server_cert, &tls.server_cert);
      take(source->server_key, &tls.server_key);
    }
    if (!use_ssl.has_value()) use_ssl = source->use_ssl;
  }
  take(kDefaultAddress, &merged.address);
  tls.use_ssl = use_ssl.value_or(false);
  return merged;
}

}  // namespace

absl::StatusOr<ConnectionSettings> ReadConnectionVariables() {
  ConnectionSettings settings{.address = Variable(kAddressVariable),
                              .cluster = Variable(kClusterVariable),
                              .use_ssl = std::nullopt,
                              .root_cert = Variable(kTlsCaVariable),
                              .server_cert = Variable(kTlsCertVariable),
                              .server_key = Variable(kTlsKeyVariable),
                              .token_file = Variable(kTokenFileVariable)};
  const std::string use_ssl = Variable(kTlsVariable);
  bool value = false;
  if (!use_ssl.empty() && !absl::SimpleAtob(use_ssl, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTlsVariable, "=", ShownName(use_ssl), ": want true or false"));
  }
  if (!use_ssl.empty()) settings.use_ssl = value;
  return settings;
}

absl::StatusOr<Connection> ChooseConnection(const ConnectionSettings& flags,
                                            const ConnectionSettings& variables,
                                            const std::string& profile_path) {
  const bool by_flag = !flags.cluster.empty();
  const bool by_variable = !by_flag && flags.address.empty() && !variables.cluster.empty();
  if (by_variable && !variables.address.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kClusterVariable, "=", ShownName(variables.cluster), " and ", kAddressVariable, "=",
        ShownName(variables.address), " are both set; unset one, or say --cluster or --address"));
  }
  const bool has_address = !flags.address.empty() || (!by_flag && !variables.address.empty());
  std::vector<const ConnectionSettings*> sources = {&flags};
  if (!by_flag) sources.push_back(&variables);
  ConnectionSettings of_cluster;
  std::string name, field;
  if (by_flag || by_variable || !has_address) {
    ASSIGN_OR_RETURN(const Profile profile, ReadProfile(profile_path));
    name = by_flag ? flags.cluster : by_variable ? variables.cluster : profile.current;
    if (!name.empty()) {
      field =
          by_flag ? absl::StrCat("--cluster ", name) : absl::StrCat(kClusterVariable, "=", name);
      ASSIGN_OR_RETURN(const ProfileCluster cluster, FindCluster(profile, name, field));
      of_cluster = SettingsOf(cluster);
      sources.push_back(&of_cluster);
    }
  }
  Connection merged = Merge(sources);
  if (!name.empty()) {
    merged.cluster = absl::StrCat("cluster ", name, " of ", ShownName(profile_path));
  }
  const std::string& token = merged.tls.token_file;
  if (token.empty()) return merged;
  const std::string token_field =
      token == flags.token_file ? "--token-file="
      : !by_flag && token == variables.token_file
          ? absl::StrCat(kTokenFileVariable, "=")
          : absl::StrCat(ShownName(profile_path), ": clusters.", name, ".token_file: ");
  RETURN_IF_ERROR(CheckTokenFileRights(token, token_field));
  return merged;
}

}  // namespace stagecoach
