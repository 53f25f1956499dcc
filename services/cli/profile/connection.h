// ChooseConnection: how a command connects, from its flags, the environment and the profile.
//   1. A cluster is chosen by --cluster, else $STAGECOACH_CLUSTER, else the profile's current one.
//      An address by flag, or by variable where no cluster is named, stands in place of a cluster.
//   2. Then each setting is that of the flag, else of the variable, else of the cluster, else
//      today's default. Variables do not count beside --cluster. A certificate hides a token of a
//      later source, and the other way round.
// Threads: pure functions, but ReadConnectionVariables, which reads the environment.
// Errors:  INVALID_ARGUMENT, FAILED_PRECONDITION with flag or variable, value and remedy; those of
//          ReadProfile.
#ifndef STAGECOACH_SERVICES_CLI_PROFILE_CONNECTION_H_
#define STAGECOACH_SERVICES_CLI_PROFILE_CONNECTION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/profile/profile.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

inline constexpr char kDefaultAddress[] = "localhost:8001";
inline constexpr char kAddressVariable[] = "STAGECOACH_ADDRESS";
inline constexpr char kClusterVariable[] = "STAGECOACH_CLUSTER";
inline constexpr char kTokenFileVariable[] = "STAGECOACH_TOKEN_FILE";

// Of one source. Empty: not given.
struct ConnectionSettings {
  std::string address, cluster;
  std::optional<bool> use_ssl;
  std::string root_cert, server_cert, server_key, token_file;

  bool names_coordinator() const { return !address.empty() || !cluster.empty(); }
};

absl::StatusOr<ConnectionSettings> ReadConnectionVariables();

struct Connection {
  std::string address;
  TlsFlags tls;
  std::string cluster;  // "cluster lab of FILE" if one was chosen
};

absl::StatusOr<Connection> ChooseConnection(const ConnectionSettings& flags,
                                            const ConnectionSettings& variables,
                                            const std::string& profile_path);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PROFILE_CONNECTION_H_
