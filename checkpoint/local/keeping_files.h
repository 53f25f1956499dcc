// KeepingFiles: a file system that also keeps a local copy of each shard of a checkpoint that is
// written through it (local_shards.h). Everything else it leaves to the one below.
// Ownership: borrows both. Files must not outlive them.
// Threads:   as the file system below.
// Errors:    those of the file system below. A copy's never come through.
#ifndef STAGECOACH_CHECKPOINT_LOCAL_KEEPING_FILES_H_
#define STAGECOACH_CHECKPOINT_LOCAL_KEEPING_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/files/file_system.h"
#include "checkpoint/local/local_shards.h"

namespace stagecoach {

class KeepingFiles final : public FileSystem {
 public:
  KeepingFiles(FileSystem* below, LocalShards* shards) : below_(*below), shards_(*shards) {}

  // A file "<job>/.tmp-<term>-<step>-<nonce>/<name>.safetensors" is a shard. It is kept once Close
  // succeeds.
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return below_.Open(path);
  }
  absl::Status Look(const std::string& path) override { return below_.Look(path); }
  absl::Status MakeFolders(const std::string& path) override { return below_.MakeFolders(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return below_.List(folder);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return below_.Rename(from, to);
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    return below_.Link(from, to);
  }
  absl::Status SyncFolder(const std::string& folder) override { return below_.SyncFolder(folder); }
  absl::Status RemoveAll(const std::string& path) override { return below_.RemoveAll(path); }
  bool IsLink(const std::string& path) override { return below_.IsLink(path); }
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override {
    return below_.FreeBytes(folder);
  }
  std::string Nonce() override { return below_.Nonce(); }

 private:
  FileSystem& below_;
  LocalShards& shards_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_LOCAL_KEEPING_FILES_H_
