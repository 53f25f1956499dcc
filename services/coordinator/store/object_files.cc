#include "services/coordinator/store/object_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/files/errno_code.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr int64_t kWritebackBytes = 8 << 20;
constexpr size_t kMostWriting = 1024;  // names kept; those of ended uploads go first
constexpr size_t kMostDigests = 256;   // under way; without one the file is read again at its end

std::string PartOf(const std::string& path) { return absl::StrCat(path, kPartSuffix); }

// Clients need not know where the coordinator keeps its files.
absl::Status WithoutPath(const absl::Status& status, const std::string& path,
                         const std::string& name) {
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{path, name}}));
}

absl::Status SyncFolderOf(const std::string& path) {
  return PosixFileSystem()->SyncFolder(FolderOf(path));
}

absl::StatusOr<std::string> DigestOf(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, PosixFileSystem()->Open(path));
  Sha256 digest;
  std::vector<std::byte> piece(size_t{1} << 20);
  for (int64_t at = 0; at < file->size();) {
    const auto bytes = std::span(piece).first(
        static_cast<size_t>(std::min(static_cast<int64_t>(piece.size()), file->size() - at)));
    RETURN_IF_ERROR(file->Read(at, bytes));
    digest.Update(bytes);
    at += static_cast<int64_t>(bytes.size());
  }
  return digest.Hex();
}

}  // namespace

// Uploads of one object, one behind the other. An upload whose stream was cut may still have a part
// on its way when its successor begins.
struct ObjectFiles::Writing {
  std::mutex mutex;
  uint64_t turn = 0;  // of the upload that may write
  // Of the first `hashed` bytes of a data set's part; none: not known.
  std::optional<Sha256> digest;
  int64_t hashed = 0;
};

absl::StatusOr<ObjectPlace> ObjectFiles::WritablePlaceOf(const std::string& name) const {
  ASSIGN_OR_RETURN(ObjectPlace place, PlaceOf(folders_, name));
  RETURN_IF_ERROR(CheckWritable(name, place));
  return place;
}

absl::StatusOr<ObjectSize> ObjectFiles::Find(const std::string& name) const {
  ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(folders_, name));
  const std::string& path = place.path;
  struct stat information;
  // The object itself twice: an upload may have completed it between the first two looks.
  for (const bool complete : {true, false, true}) {
    const std::string file = complete ? path : PartOf(path);
    if (lstat(file.c_str(), &information) == 0) {
      if (!S_ISREG(information.st_mode)) {
        return absl::DataLossError(absl::StrCat("store object ", name, ": not a regular file"));
      }
      return ObjectSize{information.st_size, complete};
    }
    if (errno != ENOENT) {
      return absl::Status(CodeOfErrno(errno), absl::StrCat("store object ", name, ": ",
                                                           std::generic_category().message(errno)));
    }
  }
  return absl::NotFoundError(absl::StrCat("store object ", name, " is not there"));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> ObjectFiles::Open(const std::string& name) const {
  ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(folders_, name));
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = PosixFileSystem()->Open(place.path);
  if (!file.ok())
    return WithoutPath(file.status(), place.path, absl::StrCat("store object ", name));
  return file;
}

std::shared_ptr<ObjectFiles::Writing> ObjectFiles::WritingOf(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (writing_.size() >= kMostWriting) {
    std::erase_if(writing_, [](const auto& entry) { return entry.second.expired(); });
  }
  std::weak_ptr<Writing>& kept = writing_[name];
  std::shared_ptr<Writing> writing = kept.lock();
  if (writing == nullptr) kept = writing = std::make_shared<Writing>();
  return writing;
}

void ObjectFiles::KeepDigest(const std::shared_ptr<Writing>& writing) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(digests_.begin(), digests_.end(), writing) != digests_.end()) return;
  digests_.push_back(writing);
  if (digests_.size() > kMostDigests) digests_.pop_front();
}

absl::StatusOr<std::unique_ptr<ObjectUpload>> ObjectFiles::BeginUpload(const std::string& name) {
  ASSIGN_OR_RETURN(const ObjectPlace place, WritablePlaceOf(name));
  std::unique_ptr<ObjectUpload> upload(
      new ObjectUpload(name, place, WritingOf(name), data_reserve_bytes_));
  if (upload->is_part()) KeepDigest(upload->writing_);
  Writing& writing = *upload->writing_;
  std::lock_guard<std::mutex> lock(writing.mutex);
  upload->turn_ = ++writing.turn;
  ASSIGN_OR_RETURN(const ObjectSize size, [&]() -> absl::StatusOr<ObjectSize> {
    absl::StatusOr<ObjectSize> found = Find(name);
    if (absl::IsNotFound(found.status())) return ObjectSize{};
    return found;
  }());
  upload->size_ = size.committed;
  if (size.complete) return upload;  // without a file: only a repeated end is accepted
  if (upload->is_part()) {
    RETURN_IF_ERROR(upload->CheckRoom());
    if (size.committed == 0) {
      writing.digest.emplace();
      writing.hashed = 0;
    } else if (writing.hashed != size.committed) {
      writing.digest.reset();
    }
  }
  upload->file_ = FileHandle(open(PartOf(place.path).c_str(),
                                  O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!upload->file_.open()) return upload->Error(errno, "create");
  return upload;
}

absl::Status ObjectFiles::Remove(const std::string& name) {
  ASSIGN_OR_RETURN(const ObjectPlace place, WritablePlaceOf(name));
  const std::shared_ptr<Writing> writing = WritingOf(name);
  std::lock_guard<std::mutex> lock(writing->mutex);
  ++writing->turn;
  for (const std::string& file : {PartOf(place.path), place.path}) {
    const absl::Status removed = PosixFileSystem()->RemoveAll(file);
    if (!removed.ok()) return WithoutPath(removed, file, absl::StrCat("store object ", name));
  }
  return absl::OkStatus();
}

std::string ObjectUpload::object() const { return absl::StrCat("store object ", name_); }

absl::Status ObjectUpload::Error(int error, const char* operation) const {
  const absl::StatusCode code = CodeOfErrno(error);
  const bool full = is_part() && code == absl::StatusCode::kResourceExhausted;
  return absl::Status(
      code, absl::StrCat(operation, " ", object(), ": ", std::generic_category().message(error),
                         full ? "; make room with `stagecoach data remove`" : ""));
}

absl::Status ObjectUpload::CheckRoom() const {
  const absl::StatusOr<int64_t> room = PosixFileSystem()->FreeBytes(FolderOf(place_.path));
  if (!room.ok()) return WithoutPath(room.status(), FolderOf(place_.path), object());
  if (*room >= reserve_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      object(), ": the coordinator's disk has ", *room, " bytes free, and ", reserve_bytes_,
      " of them are not for data sets; make room with `stagecoach data remove`"));
}

absl::Status ObjectUpload::CheckTurn() const {
  if (turn_ == writing_->turn) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("store object ", name_, ": a later call writes or has removed it"));
}

absl::StatusOr<int64_t> ObjectUpload::Append(int64_t write_offset,
                                             std::span<const std::byte> bytes) {
  std::lock_guard<std::mutex> lock(writing_->mutex);
  RETURN_IF_ERROR(CheckTurn());
  if (write_offset != size_) {
    return absl::OutOfRangeError(absl::StrCat("write_offset=", write_offset, ": store object ",
                                              name_, " has ", size_, " bytes; go on from there"));
  }
  if (!file_.open() && !bytes.empty()) {
    return absl::AlreadyExistsError(absl::StrCat("store object ", name_, " is complete"));
  }
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_.get(), bytes.data(), bytes.size(), size_);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Error(written < 0 ? errno : ENOSPC, "write");
    const size_t count = static_cast<size_t>(written);
    if (writing_->digest.has_value()) {
      writing_->digest->Update(bytes.first(count));
      writing_->hashed += written;
    }
    size_ += written;
    bytes = bytes.subspan(count);
  }
  // The disk begins now: a sync of a whole shard at the end would keep everybody waiting.
  if (size_ - handed_on_ >= kWritebackBytes) {
    if (is_part()) RETURN_IF_ERROR(CheckRoom());
    sync_file_range(file_.get(), handed_on_, size_ - handed_on_, SYNC_FILE_RANGE_WRITE);
    handed_on_ = size_;
  }
  return size_;
}

absl::StatusOr<std::string> ObjectUpload::Digest() {
  {
    std::lock_guard<std::mutex> lock(writing_->mutex);
    RETURN_IF_ERROR(CheckTurn());
    if (writing_->digest.has_value() && writing_->hashed == size_) {
      std::string digest = writing_->digest->Hex();
      writing_->digest.reset();
      return digest;
    }
  }
  // It was begun before this process, or many others came in between.
  const std::string file = PartOf(place_.path);
  absl::StatusOr<std::string> digest = DigestOf(file);
  if (!digest.ok()) return WithoutPath(digest.status(), file, object());
  return digest;
}

absl::Status ObjectUpload::Complete() {
  // Not under the lock: a sync may take minutes, and a caller that asks again must not wait for it.
  const int failed = fsync(file_.get()) == 0 ? 0 : errno;
  absl::StatusOr<std::string> digest = std::string();
  if (is_part() && failed == 0) digest = Digest();
  std::lock_guard<std::mutex> lock(writing_->mutex);
  RETURN_IF_ERROR(CheckTurn());
  RETURN_IF_ERROR(digest.status());
  const bool other = is_part() && *digest != NameOf(place_.path);
  if (failed != 0 || other) {
    // The kernel may have dropped what was not written, and a second fsync would say nothing of it.
    unlink(PartOf(place_.path).c_str());
    ++writing_->turn;
    if (failed != 0) return Error(failed, "fsync");
    return absl::DataLossError(
        absl::StrCat(object(), ": its bytes have the SHA-256 ", *digest,
                     ": the file was changed while it was uploaded; begin it anew"));
  }
  if (std::rename(PartOf(place_.path).c_str(), place_.path.c_str()) != 0) {
    return Error(errno, "complete");
  }
  file_ = FileHandle();
  return absl::OkStatus();
}

absl::Status ObjectUpload::Finish() {
  if (file_.open()) RETURN_IF_ERROR(Complete());
  // Also of an object that was complete before: perhaps this failed then.
  return WithoutPath(SyncFolderOf(place_.path), FolderOf(place_.path), object());
}

}  // namespace stagecoach
