// RemoteStoreFiles: a stage's file system, in which names of the store (store_names.h) stand for
// objects that the coordinator has. All other paths are the machine's own.
// Ownership: owns the client; borrows the file system below. Files must not outlive it.
// Threads:   thread-safe, files as in FileSystem.
// Errors:    as FileSystem and StoreClient. PERMISSION_DENIED: no grant came for the folder.
//            UNIMPLEMENTED: what only the coordinator does in its store.
#ifndef STAGECOACH_SERVICES_COMMON_STORE_REMOTE_STORE_FILES_H_
#define STAGECOACH_SERVICES_COMMON_STORE_REMOTE_STORE_FILES_H_

#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "checkpoint/files/file_system.h"
#include "services/common/store/store_client.h"

namespace stagecoach {

class RemoteStoreFiles final : public FileSystem {
 public:
  static constexpr size_t kMostGrants = 256;  // the oldest goes

  RemoteStoreFiles(FileSystem* below, StoreClient::Options options)
      : below_(*below), client_(std::move(options)) {}

  // From now on this grant opens the folder. A folder that is not the store's needs none.
  void Admit(const std::string& folder, const std::string& grant);
  void Shutdown() { client_.Shutdown(); }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status Look(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::Status MakeFolders(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& folder) override;
  absl::Status RemoveAll(const std::string& path) override;
  bool IsLink(const std::string& path) override;
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override;
  std::string Nonce() override { return below_.Nonce(); }

 private:
  absl::StatusOr<StoredObject> ObjectAt(const std::string& path);

  FileSystem& below_;
  StoreClient client_;
  std::mutex mutex_;                           // guards what follows
  std::map<std::string, std::string> grants_;  // by folder
  std::deque<std::string> order_;              // folders, oldest first
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_STORE_REMOTE_STORE_FILES_H_
