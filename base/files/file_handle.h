// FileHandle: an open file descriptor that is closed with its owner.
// Threads: thread-compatible.
#ifndef STAGECOACH_BASE_FILES_FILE_HANDLE_H_
#define STAGECOACH_BASE_FILES_FILE_HANDLE_H_

#include <unistd.h>

#include <utility>

namespace stagecoach {

class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int number) : number_(number) {}
  FileHandle(FileHandle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileHandle() {
    if (number_ >= 0) close(number_);
  }

  bool open() const { return number_ >= 0; }
  int get() const { return number_; }
  int Release() { return std::exchange(number_, -1); }  // the caller closes it

 private:
  int number_ = -1;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_FILE_HANDLE_H_
