// ObjectFiles: the store's objects as files below the coordinator's folders.
//   checkpoints/JOB/FOLDER/FILE   written only into folders that CheckpointStore::Begin made
//   exports/FOLDER/FILE           only read
// While an object is written its file ends in ".part". The file's size is the committed size.
// Ownership: none but of its names.
// Threads:   thread-safe; calls block on files. One upload belongs to one thread at a time.
// Errors:    INVALID_ARGUMENT: no name of the store. NOT_FOUND, RESOURCE_EXHAUSTED and so on as of
//            FileSystem, with the object's name and never its path. OUT_OF_RANGE: write_offset is
//            not the committed size. ABORTED: a later upload has taken over. ALREADY_EXISTS: the
//            object is complete.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_FILES_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_handle.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {

struct ObjectSize {
  int64_t committed = 0;
  bool complete = false;
};

class ObjectUpload;

class ObjectFiles {
 public:
  ObjectFiles(std::string checkpoints, std::string exports)
      : checkpoints_(std::move(checkpoints)), exports_(std::move(exports)) {}

  absl::StatusOr<ObjectSize> Find(const std::string& name) const;
  // Of a complete object.
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& name) const;
  // Ends an earlier upload of this object.
  absl::StatusOr<std::unique_ptr<ObjectUpload>> BeginUpload(const std::string& name);
  absl::Status Remove(const std::string& name);

 private:
  friend class ObjectUpload;
  struct Writing;  // of one object, for all its uploads
  absl::StatusOr<std::string> PathOf(const std::string& name) const;
  // As PathOf, for an object that callers may write.
  absl::StatusOr<std::string> WritablePathOf(const std::string& name) const;
  std::shared_ptr<Writing> WritingOf(const std::string& name);

  const std::string checkpoints_, exports_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Writing>> writing_;
};

class ObjectUpload {
 public:
  // The committed size afterwards.
  absl::StatusOr<int64_t> Append(int64_t write_offset, std::span<const std::byte> bytes);
  // The object is complete and durable. May take as long as the disk needs for all of it.
  absl::Status Finish();

 private:
  friend class ObjectFiles;
  ObjectUpload(std::string name, std::string path, std::shared_ptr<ObjectFiles::Writing> writing)
      : name_(std::move(name)), path_(std::move(path)), writing_(std::move(writing)) {}
  absl::Status Error(int error, const char* operation) const;
  absl::Status CheckTurn() const;  // under the lock: no later call has taken over
  absl::Status Complete();

  const std::string name_, path_;
  const std::shared_ptr<ObjectFiles::Writing> writing_;
  uint64_t turn_ = 0;
  FileHandle file_;
  int64_t size_ = 0;
  int64_t handed_on_ = 0;  // to the disk
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_FILES_H_
