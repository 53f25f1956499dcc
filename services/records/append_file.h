// AppendFile: a file that only grows. Others read a record while it is written. So every Append
// reaches the operating system at once, without a buffer here.
// Ownership: owns the descriptor.
// Threads:   thread-compatible.
// Errors:    canonical codes with path and errno text (RESOURCE_EXHAUSTED: the disk is full). After
//            a failed Append the file may have a part of the text.
#ifndef STAGECOACH_SERVICES_RECORDS_APPEND_FILE_H_
#define STAGECOACH_SERVICES_RECORDS_APPEND_FILE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace stagecoach {

class AppendFile {
 public:
  enum class Mode { kNew, kOpenOrNew };  // kNew: ALREADY_EXISTS if there is one
  static absl::StatusOr<AppendFile> Open(const std::string& path, Mode mode);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  AppendFile& operator=(AppendFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  absl::Status Append(const std::string& text);
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_RECORDS_APPEND_FILE_H_
