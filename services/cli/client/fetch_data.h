// FetchData: brings files of a data set from the coordinator's store into a folder of this machine.
// Ownership: owns the manifest; borrows the client.
// Threads:   the caller's, which waits.
// Errors:    NOT_FOUND: the set has no such path. DATA_LOSS: a manifest that cannot be. The client's;
//            those of the file system.
#ifndef STAGECOACH_SERVICES_CLI_CLIENT_FETCH_DATA_H_
#define STAGECOACH_SERVICES_CLI_CLIENT_FETCH_DATA_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "plan/data/data_set_path.h"
#include "services/cli/client/data_client.h"
#include "services/common/data_sets/data_manifest.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

class FetchedSet {
 public:
  // data_set: name or id.
  static absl::StatusOr<FetchedSet> Open(DataClient& client, const std::string& data_set);

  const v1::DataSet& info() const { return opened_.data_set(); }
  const CheckedManifest& manifest() const { return manifest_; }
  const std::string& manifest_sha256() const { return manifest_sha256_; }

  // Brings a file, or a folder with all in it, into `to`, under its last name. Returns its path there.
  // takes: which files of a folder, by their names; none: all.
  absl::StatusOr<std::string> Fetch(const std::string& path, const std::string& to,
                                    const std::function<bool(const std::string&)>& takes = {});

 private:
  FetchedSet(DataClient& client, v1::OpenDataSetResponse opened, CheckedManifest manifest,
             std::string manifest_sha256)
      : client_(&client),
        opened_(std::move(opened)),
        manifest_(std::move(manifest)),
        manifest_sha256_(std::move(manifest_sha256)) {}
  absl::Status FetchFile(const v1::DataSetFile& file, const std::string& to);

  DataClient* client_;
  v1::OpenDataSetResponse opened_;
  CheckedManifest manifest_;
  std::string manifest_sha256_;  // of its bytes
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_CLIENT_FETCH_DATA_H_
