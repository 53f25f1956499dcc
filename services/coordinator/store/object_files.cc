#include "services/coordinator/store/object_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/files/errno_code.h"
#include "checkpoint/names.h"
#include "services/common/store/store_names.h"

namespace stagecoach {
namespace {

constexpr char kPartSuffix[] = ".part";
constexpr int64_t kWritebackBytes = 8 << 20;
constexpr size_t kMostWriting = 1024;  // names kept; those of ended uploads go first

std::string PartOf(const std::string& path) { return absl::StrCat(path, kPartSuffix); }

absl::Status NoName(const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "name=", ShownName(name.substr(0, 300)),
      ": want checkpoints/JOB/FOLDER/FILE or exports/FOLDER/FILE, of letters, digits, '.', '-' and "
      "'_'"));
}

bool IsPart(std::string_view part) {
  // With ".part" behind it, it is still a file's name.
  return !part.empty() && part.size() <= 250 && part != "." && part != ".." &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ||
                  c == '_';
         });
}

// Clients need not know where the coordinator keeps its files.
absl::Status WithoutPath(const absl::Status& status, const std::string& path,
                         const std::string& name) {
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{path, name}}));
}

absl::Status SyncFolderOf(const std::string& path) {
  return PosixFileSystem()->SyncFolder(FolderOf(path));
}

}  // namespace

// Uploads of one object, one behind the other. An upload whose stream was cut may still have a part
// on its way when its successor begins.
struct ObjectFiles::Writing {
  std::mutex mutex;
  uint64_t turn = 0;  // of the upload that may write
};

absl::StatusOr<std::string> ObjectFiles::PathOf(const std::string& name) const {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (!std::all_of(parts.begin(), parts.end(), IsPart)) return NoName(name);
  if (parts.size() == 4 && parts[0] == kCheckpointsArea && CheckJobName(parts[1]).ok()) {
    return absl::StrCat(checkpoints_, "/", parts[1], "/", parts[2], "/", parts[3]);
  }
  if (parts.size() == 3 && parts[0] == kExportsArea) {
    return absl::StrCat(exports_, "/", parts[1], "/", parts[2]);
  }
  return NoName(name);
}

absl::StatusOr<std::string> ObjectFiles::WritablePathOf(const std::string& name) const {
  ASSIGN_OR_RETURN(std::string path, PathOf(name));
  const std::string file = NameOf(path);
  if (!absl::StartsWith(name, kCheckpointsArea) || !ParseTemporaryFolder(NameOf(FolderOf(path))) ||
      !CheckShardFile(file).ok() || file.ends_with(kPartSuffix)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "store object ", name, ": only shards of a checkpoint that is begun are written"));
  }
  return path;
}

absl::StatusOr<ObjectSize> ObjectFiles::Find(const std::string& name) const {
  ASSIGN_OR_RETURN(const std::string path, PathOf(name));
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
  ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = PosixFileSystem()->Open(path);
  if (!file.ok()) return WithoutPath(file.status(), path, absl::StrCat("store object ", name));
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

absl::StatusOr<std::unique_ptr<ObjectUpload>> ObjectFiles::BeginUpload(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string path, WritablePathOf(name));
  std::unique_ptr<ObjectUpload> upload(new ObjectUpload(name, path, WritingOf(name)));
  std::lock_guard<std::mutex> lock(upload->writing_->mutex);
  upload->turn_ = ++upload->writing_->turn;
  ASSIGN_OR_RETURN(const ObjectSize size, [&]() -> absl::StatusOr<ObjectSize> {
    absl::StatusOr<ObjectSize> found = Find(name);
    if (absl::IsNotFound(found.status())) return ObjectSize{};
    return found;
  }());
  upload->size_ = size.committed;
  if (size.complete) return upload;  // without a file: only a repeated end is accepted
  upload->file_ = FileHandle(
      open(PartOf(path).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!upload->file_.open()) return upload->Error(errno, "create");
  return upload;
}

absl::Status ObjectFiles::Remove(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string path, WritablePathOf(name));
  const std::shared_ptr<Writing> writing = WritingOf(name);
  std::lock_guard<std::mutex> lock(writing->mutex);
  ++writing->turn;
  for (const std::string& file : {PartOf(path), path}) {
    const absl::Status removed = PosixFileSystem()->RemoveAll(file);
    if (!removed.ok()) return WithoutPath(removed, file, absl::StrCat("store object ", name));
  }
  return absl::OkStatus();
}

absl::Status ObjectUpload::Error(int error, const char* operation) const {
  return absl::Status(CodeOfErrno(error), absl::StrCat(operation, " store object ", name_, ": ",
                                                       std::generic_category().message(error)));
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
    size_ += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  // The disk begins now: a sync of a whole shard at the end would keep everybody waiting.
  if (size_ - handed_on_ >= kWritebackBytes) {
    sync_file_range(file_.get(), handed_on_, size_ - handed_on_, SYNC_FILE_RANGE_WRITE);
    handed_on_ = size_;
  }
  return size_;
}

absl::Status ObjectUpload::Complete() {
  // Not under the lock: a sync may take minutes, and a caller that asks again must not wait for it.
  const int failed = fsync(file_.get()) == 0 ? 0 : errno;
  std::lock_guard<std::mutex> lock(writing_->mutex);
  RETURN_IF_ERROR(CheckTurn());
  if (failed != 0) {
    // The kernel may have dropped what was not written, and a second fsync would say nothing of it.
    unlink(PartOf(path_).c_str());
    ++writing_->turn;
    return Error(failed, "fsync");
  }
  if (std::rename(PartOf(path_).c_str(), path_.c_str()) != 0) return Error(errno, "complete");
  file_ = FileHandle();
  return absl::OkStatus();
}

absl::Status ObjectUpload::Finish() {
  if (file_.open()) RETURN_IF_ERROR(Complete());
  // Also of an object that was complete before: perhaps this failed then.
  return WithoutPath(SyncFolderOf(path_), FolderOf(path_), absl::StrCat("store object ", name_));
}

}  // namespace stagecoach
