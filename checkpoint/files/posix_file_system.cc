#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "checkpoint/files/errno_code.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {
namespace {

absl::Status ErrnoStatus(int error, const char* operation, const std::string& path) {
  return absl::Status(CodeOfErrno(error), absl::StrCat(operation, " ", path, ": ",
                                                       std::generic_category().message(error)));
}

// A share that is away answers EIO, too: what cannot be read now is not broken yet.
absl::Status ReadErrnoStatus(int error, const char* operation, const std::string& path) {
  const absl::Status status = ErrnoStatus(error, operation, path);
  return absl::IsDataLoss(status) ? absl::UnavailableError(status.message()) : status;
}

// The call again for as long as a signal interrupts it.
template <typename Call>
auto Uninterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

// A large tensor is read and written in pieces, so that a slow disk is seen to get on.
size_t Piece(size_t bytes) { return std::min(bytes, kProgressPieceBytes); }

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  ~PosixWritableFile() override {
    if (descriptor_ >= 0) close(descriptor_);
  }

  absl::Status Append(std::span<const std::byte> bytes) override {
    RETURN_IF_ERROR(status_);
    while (!bytes.empty()) {
      const ssize_t written =
          Uninterrupted([&] { return write(descriptor_, bytes.data(), Piece(bytes.size())); });
      if (written < 0) return Poison(ErrnoStatus(errno, "write", path_));
      if (written == 0) return Poison(ErrnoStatus(ENOSPC, "write", path_));
      bytes = bytes.subspan(static_cast<size_t>(written));
      TickProgress();
    }
    return absl::OkStatus();
  }

  // Never tried again after a failure: the kernel may have dropped the dirty pages and marked them
  // clean, so that a second fsync would lie.
  absl::Status Sync() override {
    RETURN_IF_ERROR(status_);
    if (Uninterrupted([&] { return fsync(descriptor_); }) != 0) {
      return Poison(ErrnoStatus(errno, "fsync", path_));
    }
    return absl::OkStatus();
  }

  // Closes the descriptor also when an earlier call failed, and answers that first error. close is
  // not repeated after EINTR: Linux has released the descriptor by then.
  absl::Status Close() override {
    if (descriptor_ < 0) return status_;
    const int result = close(descriptor_);
    const int error = errno;
    descriptor_ = -1;
    if (!status_.ok()) return status_;
    status_ = absl::FailedPreconditionError(absl::StrCat("file ", path_, " is closed"));
    if (result != 0) return Poison(ErrnoStatus(error, "close", path_));
    return absl::OkStatus();
  }

 private:
  absl::Status Poison(absl::Status status) {
    status_ = std::move(status);
    return status_;
  }

  int descriptor_;
  const std::string path_;
  absl::Status status_;  // the first failure; every later call answers it
};

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(FileHandle descriptor, int64_t size, std::string path)
      : descriptor_(std::move(descriptor)), size_(size), path_(std::move(path)) {}

  int64_t size() const override { return size_; }

  absl::Status Read(int64_t offset, std::span<std::byte> target) override {
    const int64_t length = static_cast<int64_t>(target.size());
    if (offset < 0 || offset > size_ || length > size_ - offset) {
      return absl::DataLossError(absl::StrCat("read ", path_, ": ", length, " bytes at offset ",
                                              offset, " are not within its ", size_, " bytes"));
    }
    while (!target.empty()) {
      const ssize_t got = Uninterrupted(
          [&] { return pread(descriptor_.get(), target.data(), Piece(target.size()), offset); });
      if (got < 0) return ReadErrnoStatus(errno, "read", path_);
      if (got == 0) {
        return absl::DataLossError(
            absl::StrCat("read ", path_, ": the file became shorter than ", size_, " bytes"));
      }
      offset += got;
      target = target.subspan(static_cast<size_t>(got));
      TickProgress();
    }
    return absl::OkStatus();
  }

 private:
  const FileHandle descriptor_;
  const int64_t size_;
  const std::string path_;
};

absl::Status SyncFolderAt(const std::string& folder) {
  const int descriptor =
      Uninterrupted([&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return ErrnoStatus(errno, "open folder", folder);
  const int result = Uninterrupted([&] { return fsync(descriptor); });
  const int error = errno;
  close(descriptor);
  if (result != 0) return ErrnoStatus(error, "fsync folder", folder);
  return absl::OkStatus();
}

bool IsFolder(const std::string& path) {
  struct stat information;
  return stat(path.c_str(), &information) == 0 && S_ISDIR(information.st_mode);
}

class PosixFiles final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    const int descriptor = Uninterrupted([&] {
      return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    });
    if (descriptor < 0) return ErrnoStatus(errno, "create", path);
    return std::make_unique<PosixWritableFile>(descriptor, path);
  }

  // Regular files only. O_NONBLOCK keeps a planted pipe from blocking us, O_NOFOLLOW keeps a
  // planted link from leading out of the folder.
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    FileHandle descriptor(Uninterrupted(
        [&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
    if (!descriptor.open() && (errno == ELOOP || errno == ENXIO)) {
      return absl::DataLossError(absl::StrCat("open ", path, ": not a regular file"));
    }
    if (!descriptor.open()) return ReadErrnoStatus(errno, "open", path);
    struct stat information;
    if (fstat(descriptor.get(), &information) != 0) return ErrnoStatus(errno, "stat", path);
    if (!S_ISREG(information.st_mode)) {
      return absl::DataLossError(absl::StrCat("open ", path, ": not a regular file"));
    }
    return ReadableFileOf(std::move(descriptor), information.st_size, path);
  }

  absl::Status MakeFolders(const std::string& path) override {
    if (path.empty()) return absl::InvalidArgumentError("make folder: the path is empty");
    if (IsFolder(path)) return absl::OkStatus();
    const std::string parent = Parent(path);
    if (parent != path) RETURN_IF_ERROR(MakeFolders(parent));
    if (mkdir(path.c_str(), 0700) != 0) {
      const int error = errno;
      if (error == EEXIST && IsFolder(path)) return absl::OkStatus();  // somebody else was faster
      return ErrnoStatus(error, "make folder", path);
    }
    return SyncFolderAt(parent);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    DIR* stream = opendir(folder.c_str());
    if (stream == nullptr) return ReadErrnoStatus(errno, "list", folder);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    const int error = errno;
    closedir(stream);
    if (error != 0) return ReadErrnoStatus(error, "list", folder);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) {
      return ErrnoStatus(errno, "rename", absl::StrCat(from, " to ", to));
    }
    return absl::OkStatus();
  }

  absl::Status Link(const std::string& from, const std::string& to) override {
    if (link(from.c_str(), to.c_str()) != 0) {
      return ErrnoStatus(errno, "link", absl::StrCat(from, " to ", to));
    }
    return absl::OkStatus();
  }

  absl::Status SyncFolder(const std::string& folder) override { return SyncFolderAt(folder); }

  absl::Status RemoveAll(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return ErrnoStatus(error.value(), "remove", path);
    return absl::OkStatus();
  }

  absl::Status Look(const std::string& path) override {
    struct stat information;
    if (lstat(path.c_str(), &information) == 0) return absl::OkStatus();
    return ReadErrnoStatus(errno == ENOTDIR ? ENOENT : errno, "look at", path);
  }

  bool IsLink(const std::string& path) override {
    struct stat information;
    return lstat(path.c_str(), &information) == 0 && S_ISLNK(information.st_mode);
  }

  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override {
    struct statvfs information;
    if (Uninterrupted([&] { return statvfs(folder.c_str(), &information); }) != 0) {
      return ErrnoStatus(errno, "statvfs", folder);
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(information.f_bavail, information.f_frsize, &bytes)) {
      return std::numeric_limits<int64_t>::max();
    }
    return bytes;
  }

 private:
  static std::string Parent(const std::string& path) {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    return parent.empty() ? "." : parent.string();
  }
};

}  // namespace

std::unique_ptr<ReadableFile> ReadableFileOf(FileHandle descriptor, int64_t size,
                                             std::string path) {
  return std::make_unique<PosixReadableFile>(std::move(descriptor), size, std::move(path));
}

FileSystem* PosixFileSystem() {
  static PosixFiles* const files = new PosixFiles;
  return files;
}

}  // namespace stagecoach
