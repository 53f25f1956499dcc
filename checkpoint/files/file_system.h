// FileSystem: the few calls that checkpoints and the journal's folder need. Tests can fail the n-th
// call, fill the disk, or cut the power (forget what was not synced).
// Ownership: the caller owns what Create and Open answer; it must not outlive the file system.
// Threads:   implementations are thread-safe; a WritableFile belongs to one thread.
// Errors:    canonical codes with path and errno text: NOT_FOUND, ALREADY_EXISTS,
//            RESOURCE_EXHAUSTED (ENOSPC, EDQUOT), DATA_LOSS (EIO), PERMISSION_DENIED, UNAVAILABLE
//            otherwise. After a failed write or sync a file is poisoned: every later call on it
//            fails. Anything but a regular file is refused: DATA_LOSS.
#ifndef STAGECOACH_CHECKPOINT_FILES_FILE_SYSTEM_H_
#define STAGECOACH_CHECKPOINT_FILES_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_handle.h"

namespace stagecoach {

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes without syncing
  virtual absl::Status Append(std::span<const std::byte> bytes) = 0;
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual int64_t size() const = 0;
  // Reads exactly that many bytes, or answers an error.
  virtual absl::Status Read(int64_t offset, std::span<std::byte> target) = 0;
};

// The part of a file system that readers need. It may show only some files
// (stage/files/data_roots.h).
class ReadableFiles {
 public:
  virtual ~ReadableFiles() = default;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // OK: something is there, even if it cannot be opened. NOT_FOUND: nothing. Others: unknown now.
  virtual absl::Status Look(const std::string& path) = 0;
};

class FileSystem : public ReadableFiles {
 public:
  bool Exists(const std::string& path) { return Look(path).ok(); }
  // A new file, mode 0600; ALREADY_EXISTS if there is one.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  virtual absl::Status MakeFolders(const std::string& path) = 0;  // all missing parents; 0700
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;  // sorted
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // A second name of a file; ALREADY_EXISTS if `to` is there. UNIMPLEMENTED: these files have none.
  virtual absl::Status Link(const std::string& from, const std::string& to);
  virtual absl::Status SyncFolder(const std::string& folder) = 0;
  virtual absl::Status RemoveAll(const std::string& path) = 0;  // missing is ok
  virtual bool IsLink(const std::string&) { return false; }     // a symbolic one, as its last part
  virtual absl::StatusOr<int64_t> FreeBytes(const std::string& folder) = 0;
  // 16 hexadecimal digits for a unique name. By default random.
  virtual std::string Nonce();
};

FileSystem* PosixFileSystem();  // one immutable object for the process

// File over an open descriptor of a regular file; `path` is for errors.
std::unique_ptr<ReadableFile> ReadableFileOf(FileHandle descriptor, int64_t size, std::string path);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_FILES_FILE_SYSTEM_H_
