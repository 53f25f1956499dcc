// S3Files: the coordinator's file system, in which names of the store (store_names.h) stand for
// objects of an S3 bucket. All other paths are the machine's own. A CheckpointStore works on it as
// on a disk, though S3 has neither folders nor renames:
//   P/checkpoints/JOB/.tmp-<term>-<step>-<nonce>/FILE   a checkpoint's files, for good
//   P/checkpoints/JOB/step-<step>                       an alias: the name of such a folder
//   P/checkpoints/JOB/.broken-..., .trash-...           aliases too
//   P/checkpoints/JOB/LATEST                            a file
//   P/checkpoints/JOB/.tmp-.../.removed                 the folder is about to go
// Rename(.tmp-..., step-...) makes the alias by one put that succeeds only if there is none: this is
// the commit. An alias never changes; paths below it lead to its folder. List leaves out folders
// that have an alias.
// Ownership: borrows the client and the file system below.
// Threads:   thread-safe; calls wait for the server.
// Errors:    as FileSystem and S3Client. UNIMPLEMENTED: a rename that CheckpointStore does not make.
// See:       docs/formats.md, "Checkpoints in a bucket".
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_S3_FILES_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_S3_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/files/file_system.h"
#include "services/common/s3/s3_client.h"

namespace stagecoach {

class S3Files final : public FileSystem {
 public:
  S3Files(FileSystem* below, S3Client* client) : below_(*below), client_(*client) {}

  // Puts, reads and removes a small object, and has a second conditional put refused. Errors name
  // --store and the remedy. FAILED_PRECONDITION: the server ignores the condition.
  absl::Status Probe();
  // The object of a file, through its folder's alias. NOT_FOUND: the folder has none.
  absl::StatusOr<std::string> KeyOf(const std::string& path);

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
  struct Name;  // a path of the store, taken apart
  static absl::StatusOr<Name> Parse(const std::string& path);
  std::string Root() const;                    // "P/checkpoints/"
  std::string JobKey(const Name& name) const;  // "P/checkpoints/JOB/"
  std::string EntryKey(
      const Name& name) const;  // "P/checkpoints/JOB/FOLDER", a file's or an alias's
  absl::StatusOr<std::string> Target(const std::string& alias_key);  // the folder's name
  absl::StatusOr<std::string> FolderKey(const Name& name);           // with a '/' behind
  absl::StatusOr<std::set<std::string>> Aliased(const std::vector<S3Entry>& entries);
  absl::StatusOr<bool> IsCommitted(const Name& temporary);
  absl::StatusOr<std::vector<std::string>> ListJob(const Name& name);
  absl::StatusOr<bool> IsWhole(const Name& temporary);
  absl::Status Commit(const Name& temporary, const Name& step);
  absl::Status MoveAlias(const Name& from, const Name& to);
  absl::Status TakeBack(const Name& step, const Name& temporary);
  absl::Status MoveFile(const Name& from, const Name& to);
  absl::Status RemoveBelow(const std::string& prefix);
  absl::Status RemoveAlias(const Name& name);
  absl::Status RemoveTemporary(const Name& name);
  absl::Status RemoveJob(const Name& name);

  FileSystem& below_;
  S3Client& client_;
  std::mutex mutex_;
  // Of aliases that were read: by key and ETag, so that one made anew is read anew.
  std::map<std::pair<std::string, std::string>, std::string> targets_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_S3_FILES_H_
