// Descriptor: an open file descriptor that is closed with its owner.
// Threads: thread-compatible.
#ifndef STAGECOACH_BASE_DESCRIPTOR_H_
#define STAGECOACH_BASE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace stagecoach {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  bool open() const { return number_ >= 0; }
  int get() const { return number_; }
  int Release() { return std::exchange(number_, -1); }  // the caller closes it

 private:
  int number_ = -1;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_DESCRIPTOR_H_
