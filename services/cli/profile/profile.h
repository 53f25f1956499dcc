// Profile: the clusters that a person uses, by name, in a YAML file of theirs.
//   current: lab
//   clusters:
//     lab:
//       coordinator: lab.example:8001
//       certs: certs/ann        # a folder with ca.pem, tls.crt and tls.key
//     shared:
//       coordinator: shared.example:8001
//       ca: shared.pem          # with cert and key, or with token_file
//       token_file: token
// A relative path is relative to the profile's folder. Without certs or ca there is no TLS. Without
// `current`, a profile's only cluster is the current one.
// Ownership: values.
// Threads:   pure functions, but for the file.
// Errors:    INVALID_ARGUMENT "file:line:column: field: what is wrong, and the remedy".
#ifndef STAGECOACH_SERVICES_CLI_PROFILE_PROFILE_H_
#define STAGECOACH_SERVICES_CLI_PROFILE_PROFILE_H_

#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

struct ProfileCluster {
  std::string coordinator;
  // Absolute paths, or empty. Either `certs`, or `ca` with both of cert and key or with token_file.
  std::string certs, ca, cert, key, token_file;

  TlsFlags tls() const;  // files of `certs` by their names
  friend bool operator==(const ProfileCluster&, const ProfileCluster&) = default;
};

struct Profile {
  std::string file;     // empty: this environment names no place for one
  std::string current;  // empty: none
  std::map<std::string, ProfileCluster> clusters;
};

// The file's place: $STAGECOACH_CONFIG, else $XDG_CONFIG_HOME/stagecoach/config.yaml, else
// ~/.config/stagecoach/config.yaml. Absolute; empty if the environment has no home either.
std::string ProfilePath();

// A profile without clusters if there is no such file, or if it is /dev/null. Refused if others than
// its owner may write it.
absl::StatusOr<Profile> ReadProfile(const std::string& path);

// Writes the file anew, whole or not at all, with the rights 0600; missing folders get 0700. A link
// stays, and the file behind it is replaced. Comments are lost.
absl::Status WriteProfile(const Profile& profile);

// Reads the profile, has it changed, and writes it; returns what `change` returns. Changes at once
// wait for each other (folder_lock.h, with its errors), so none is lost. Makes missing folders.
absl::StatusOr<std::string> ChangeProfile(
    const std::string& path, absl::FunctionRef<absl::StatusOr<std::string>(Profile&)> change);

// The cluster of that name. INVALID_ARGUMENT if there is none; `field` ("--cluster lab") says who
// asks.
absl::StatusOr<ProfileCluster> FindCluster(const Profile& profile, const std::string& name,
                                           const std::string& field);

// Letters, digits, '.', '-', '_'; at most 63.
absl::Status CheckClusterName(const std::string& name);

// Checks fields that belong together. `place` names the cluster in errors.
absl::Status CheckCluster(const ProfileCluster& cluster, const std::string& place);

// FAILED_PRECONDITION if others than its owner may read or write the file of a token;
// INVALID_ARGUMENT if it is not there. `field` stands in front of the file in errors:
// "--token-file=", "clusters.lab.token_file: ".
absl::Status CheckTokenFileRights(const std::string& token_file, const std::string& field);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PROFILE_PROFILE_H_
