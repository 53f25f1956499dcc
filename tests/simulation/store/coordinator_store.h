// CoordinatorStore: one coordinator's way to the checkpoints, and what it serves of them to stages.
// Three forms, as its flags have them: a folder that all hosts share, its own disk, a bucket. Real
// are CheckpointStore, LocalStoreFiles, S3Files, S3Client, S3Objects and the grants. Played is what
// ObjectFiles does, on the simulated disk.
// Ownership: borrows all of Parts; made anew with each process.
// Threads:   one.
// Errors:    as of proto/stagecoach/v1/store.proto.
#ifndef STAGECOACH_TESTS_SIMULATION_STORE_COORDINATOR_STORE_H_
#define STAGECOACH_TESTS_SIMULATION_STORE_COORDINATOR_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/store/store.h"
#include "services/coordinator/store/local_store_files.h"
#include "services/coordinator/store/object_files.h"
#include "services/coordinator/store/object_grants.h"
#include "services/coordinator/store/s3_files.h"
#include "services/coordinator/store/s3_objects.h"
#include "tests/simulation/store/bucket_transfer.h"
#include "tests/simulation/store/store_form.h"

namespace stagecoach {

inline constexpr char kCheckpointFolder[] = "/checkpoints";

class CoordinatorStore {
 public:
  struct Parts {
    StoreForm form = StoreForm::kFolder;
    FileSystem* files = nullptr;  // of its host
    BucketTransfer* transfer = nullptr;
    const Clock* clock = nullptr;  // for the store's patience
    bool forgets = false;          // a planted fault: what is complete is not synced
  };
  explicit CoordinatorStore(const Parts& parts);

  FileSystem& files() { return bucket_ ? bucket_->files : names_ ? *names_ : *parts_.files; }
  CheckpointStore& checkpoints() { return *checkpoints_; }

  // The grant that GrpcStageClient sends with a command for the folder. Empty: it needs none.
  std::string GrantFor(const std::string& folder, ObjectGrants::Use use) const;

  absl::Status Find(const v1::FindObjectRequest& request, v1::FindObjectResponse* response);
  absl::Status Remove(const v1::RemoveObjectRequest& request, v1::RemoveObjectResponse* response);
  absl::Status Locate(const v1::LocateObjectRequest& request, v1::LocateObjectResponse* response);
  absl::Status Complete(const v1::CompleteObjectRequest& request,
                        v1::CompleteObjectResponse* response);
  absl::StatusOr<std::string> Read(const v1::ReadObjectRequest& request);
  // The messages of one call, as far as they came. The committed size.
  absl::StatusOr<int64_t> Write(const std::vector<v1::WriteObjectRequest>& parts);

 private:
  struct Bucket {
    explicit Bucket(const Parts& parts);
    S3CredentialSource credentials;
    S3Client client;
    S3Files files;
    S3Client quick;
    S3Files quick_files;
    S3Objects objects;
  };
  struct Upload {  // of an object that is not complete, in this process
    std::unique_ptr<WritableFile> file;
    int64_t bytes = 0;
  };
  absl::Status Check(const std::string& name, const std::string& grant,
                     ObjectGrants::Use use) const;
  absl::StatusOr<std::string> PathOf(const std::string& name, bool writes) const;
  absl::StatusOr<ObjectSize> SizeOf(const std::string& name);
  absl::Status GoOn(const std::string& name, const std::string& part);
  absl::Status Finish(const std::string& name, const std::string& path);

  const Parts parts_;
  std::optional<LocalStoreFiles> names_;
  std::unique_ptr<Bucket> bucket_;
  std::optional<CheckpointStore> checkpoints_;
  ObjectGrants grants_;
  std::map<std::string, Upload> uploads_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_STORE_COORDINATOR_STORE_H_
