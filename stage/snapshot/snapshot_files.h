// SnapshotFiles: a snapshot as the files of a checkpoint, so that one loader reads both. The
// manifest comes with the load. Shards lie in this stage's memory or in another's. From another
// stage their parts are fetched when they are read.
// Ownership: borrows store and peers; opened files borrow them too.
// Threads:   one.
// Errors:    as ReadableFile; from another stage as SnapshotPeers. Digests in the manifest prove the
//            bytes, as with a checkpoint.
#ifndef STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_FILES_H_
#define STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_FILES_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/manifest.h"
#include "plan/control.h"
#include "stage/snapshot/snapshot_peers.h"
#include "stage/snapshot/snapshot_store.h"

namespace stagecoach {

class SnapshotFiles final : public ReadableFiles {
 public:
  // DATA_LOSS: the plan's manifest cannot be read.
  static absl::StatusOr<std::unique_ptr<SnapshotFiles>> Make(const std::string& job,
                                                             const SnapshotPlan& plan,
                                                             const SnapshotStore* store,
                                                             SnapshotPeers* peers);
  // "/MANIFEST.json", "/layer-0000-0007.safetensors".
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status Look(const std::string& path) override;
  const Manifest& manifest() const { return manifest_; }

 private:
  class RemoteFile;
  SnapshotFiles(const std::string& job, const SnapshotPlan& plan, Manifest manifest,
                const SnapshotStore* store, SnapshotPeers* peers);

  const std::string job_;
  const SnapshotPlan plan_;
  const Manifest manifest_;
  const SnapshotStore* const store_;
  SnapshotPeers* const peers_;  // null: there are no other stages to ask
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_FILES_H_
