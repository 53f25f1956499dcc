// ObjectFiles: the store's objects as files below the coordinator's folders (object_names.h).
// While an object is written its file ends in ".part". The file's size is the committed size. A
// part of a data set is named by its SHA-256, and completed only if its bytes have it.
// Ownership: none but of its names.
// Threads:   thread-safe; calls block on files. One upload belongs to one thread at a time.
// Errors:    INVALID_ARGUMENT: no name of the store. NOT_FOUND, RESOURCE_EXHAUSTED and so on as of
//            FileSystem, with the object's name and never its path. OUT_OF_RANGE: write_offset is
//            not the committed size. ABORTED: a later upload has taken over. ALREADY_EXISTS: the
//            object is complete. DATA_LOSS at the end of a part: its bytes have another SHA-256; it
//            is removed, and may be written anew.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_FILES_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_handle.h"
#include "checkpoint/files/file_system.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {

struct ObjectSize {
  int64_t committed = 0;
  bool complete = false;
};

class ObjectUpload;

class ObjectFiles {
 public:
  // Data sets leave this much of the disk to the journal and to checkpoints.
  static constexpr int64_t kDataReserveBytes = int64_t{256} << 20;

  explicit ObjectFiles(ObjectFolders folders, int64_t data_reserve_bytes = kDataReserveBytes)
      : folders_(std::move(folders)), data_reserve_bytes_(data_reserve_bytes) {}

  absl::StatusOr<ObjectSize> Find(const std::string& name) const;
  // Of a complete object.
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& name) const;
  // Ends an earlier upload of this object.
  absl::StatusOr<std::unique_ptr<ObjectUpload>> BeginUpload(const std::string& name);
  absl::Status Remove(const std::string& name);

 private:
  friend class ObjectUpload;
  struct Writing;  // of one object, for all its uploads
  // Of an object that callers may write.
  absl::StatusOr<ObjectPlace> WritablePlaceOf(const std::string& name) const;
  std::shared_ptr<Writing> WritingOf(const std::string& name);
  void KeepDigest(const std::shared_ptr<Writing>& writing);

  const ObjectFolders folders_;
  const int64_t data_reserve_bytes_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Writing>> writing_;
  // A part comes in several uploads, and its digest goes on from one to the next.
  std::deque<std::shared_ptr<Writing>> digests_;
};

class ObjectUpload {
 public:
  // The committed size afterwards.
  absl::StatusOr<int64_t> Append(int64_t write_offset, std::span<const std::byte> bytes);
  // The object is complete and durable. May take as long as the disk needs for all of it.
  absl::Status Finish();
  ObjectArea area() const { return place_.area; }

 private:
  friend class ObjectFiles;
  ObjectUpload(std::string name, ObjectPlace place, std::shared_ptr<ObjectFiles::Writing> writing,
               int64_t reserve_bytes)
      : name_(std::move(name)),
        place_(std::move(place)),
        writing_(std::move(writing)),
        reserve_bytes_(reserve_bytes) {}
  bool is_part() const { return place_.area == ObjectArea::kDataPart; }
  std::string object() const;
  absl::Status Error(int error, const char* operation) const;
  absl::Status CheckTurn() const;  // under the lock: no later call has taken over
  absl::Status CheckRoom() const;
  absl::StatusOr<std::string> Digest();  // of all bytes
  absl::Status Complete();

  const std::string name_;
  const ObjectPlace place_;
  const std::shared_ptr<ObjectFiles::Writing> writing_;
  const int64_t reserve_bytes_;
  uint64_t turn_ = 0;
  FileHandle file_;
  int64_t size_ = 0;
  int64_t handed_on_ = 0;  // to the disk
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_FILES_H_
