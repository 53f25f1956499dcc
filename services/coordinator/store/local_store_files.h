// LocalStoreFiles: the coordinator's file system, in which names of the store (store_names.h) stand
// for files below its folder of checkpoints. All other paths are the machine's own.
// Ownership: borrows the file system below.
// Threads, errors: as that file system; errors have the store's names.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_LOCAL_STORE_FILES_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_LOCAL_STORE_FILES_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "checkpoint/files/file_system.h"
#include "services/common/store/store_names.h"

namespace stagecoach {

class LocalStoreFiles final : public FileSystem {
 public:
  LocalStoreFiles(FileSystem* below, std::string checkpoints)
      : below_(*below), checkpoints_(std::move(checkpoints)) {}

  // Root of a CheckpointStore over these files.
  static std::string Root() { return absl::StrCat(kStorePrefix, kCheckpointsArea); }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return Named(below_.Open(PathOf(path)), path);
  }
  absl::Status Look(const std::string& path) override {
    return Named(below_.Look(PathOf(path)), path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return Named(below_.Create(PathOf(path)), path);
  }
  absl::Status MakeFolders(const std::string& path) override {
    return Named(below_.MakeFolders(PathOf(path)), path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return Named(below_.List(PathOf(folder)), folder);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Named(Named(below_.Rename(PathOf(from), PathOf(to)), from), to);
  }
  absl::Status SyncFolder(const std::string& folder) override {
    return Named(below_.SyncFolder(PathOf(folder)), folder);
  }
  absl::Status RemoveAll(const std::string& path) override {
    return Named(below_.RemoveAll(PathOf(path)), path);
  }
  bool IsLink(const std::string& path) override { return below_.IsLink(PathOf(path)); }
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override {
    return Named(below_.FreeBytes(PathOf(folder)), folder);
  }
  std::string Nonce() override { return below_.Nonce(); }

 private:
  std::string PathOf(const std::string& path) const {
    const std::string root = Root();
    if (path == root) return checkpoints_;
    if (!path.starts_with(absl::StrCat(root, "/"))) return path;
    return absl::StrCat(checkpoints_, path.substr(root.size()));
  }
  // Users are told the name that was asked for, and not the coordinator's path.
  absl::Status Named(const absl::Status& status, const std::string& name) const {
    if (status.ok() || !IsStoreName(name)) return status;
    return absl::Status(status.code(),
                        absl::StrReplaceAll(status.message(), {{PathOf(name), name}}));
  }
  template <typename T>
  absl::StatusOr<T> Named(absl::StatusOr<T> result, const std::string& name) const {
    if (result.ok()) return result;
    return Named(result.status(), name);
  }

  FileSystem& below_;
  const std::string checkpoints_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_LOCAL_STORE_FILES_H_
