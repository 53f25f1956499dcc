#include "services/common/store/ahead_reader.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

constexpr int64_t kAheadBytes = int64_t{8} << 20;   // of a file that is read from front to back
constexpr int64_t kLeastBytes = int64_t{64} << 10;  // of one that is looked into

class AheadReader final : public ReadableFile {
 public:
  AheadReader(std::string name, int64_t size,
              std::function<absl::Status(int64_t, std::span<std::byte>)> read)
      : name_(std::move(name)), size_(size), read_(std::move(read)) {}
  int64_t size() const override { return size_; }

  absl::Status Read(int64_t offset, std::span<std::byte> target) override {
    const auto bytes = static_cast<int64_t>(target.size());
    if (offset < 0 || bytes > size_ || offset > size_ - bytes) {
      return absl::DataLossError(
          absl::StrCat(name_, ": ", bytes, " bytes at ", offset, " are asked for, it has ", size_));
    }
    if (bytes == 0) return absl::OkStatus();
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes >= kAheadBytes) return read_(offset, target);
    if (offset < begin_ || offset + bytes > begin_ + Held()) {
      const int64_t wanted = offset == next_ ? kAheadBytes : kLeastBytes;
      ahead_.resize(static_cast<size_t>(std::min(std::max(wanted, bytes), size_ - offset)));
      begin_ = offset;
      const absl::Status read = read_(offset, ahead_);
      if (!read.ok()) ahead_.clear();
      RETURN_IF_ERROR(read);
    }
    std::memcpy(target.data(), ahead_.data() + (offset - begin_), target.size());
    next_ = offset + bytes;
    return absl::OkStatus();
  }

 private:
  int64_t Held() const { return static_cast<int64_t>(ahead_.size()); }

  const std::string name_;
  const int64_t size_;
  const std::function<absl::Status(int64_t, std::span<std::byte>)> read_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::byte> ahead_;
  int64_t begin_ = 0;  // of ahead_ in the file
  int64_t next_ = -1;  // where the last read ended
};

}  // namespace

std::unique_ptr<ReadableFile> ReadAhead(
    std::string name, int64_t size,
    std::function<absl::Status(int64_t offset, std::span<std::byte> target)> read) {
  return std::make_unique<AheadReader>(std::move(name), size, std::move(read));
}

}  // namespace stagecoach
