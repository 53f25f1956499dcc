#include "checkpoint/memory_shard.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace stagecoach {
namespace {

class MemoryFile final : public ReadableFile {
 public:
  MemoryFile(std::span<const std::byte> bytes, std::string path, std::shared_ptr<const void> keeps)
      : bytes_(bytes), path_(std::move(path)), keeps_(std::move(keeps)) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::Status Read(int64_t offset, std::span<std::byte> target) override {
    if (offset < 0 || offset > size() || target.size() > bytes_.size() - offset) {
      return absl::DataLossError(absl::StrCat(path_, ": ", target.size(), " bytes at ", offset,
                                              " of ", size(), " were asked for"));
    }
    if (!target.empty()) std::memcpy(target.data(), bytes_.data() + offset, target.size());
    return absl::OkStatus();
  }

 private:
  const std::span<const std::byte> bytes_;
  const std::string path_;
  const std::shared_ptr<const void> keeps_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<std::byte[]>> TakeBytes(int64_t bytes) {
  std::unique_ptr<std::byte[]> taken(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
  if (taken != nullptr) return taken;
  return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes of memory are free"));
}

absl::StatusOr<MemoryShard> MemoryShard::LayOut(const ShardLayers& layers,
                                                std::vector<TensorSource> tensors,
                                                MemoryShard* spare) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSource& a, const TensorSource& b) { return a.name < b.name; });
  MemoryShard shard;
  shard.name_ = ShardFileName(layers);
  ASSIGN_OR_RETURN(shard.tensors_, LayOutTensors(tensors));
  ASSIGN_OR_RETURN(const std::string header, FormatSafetensorsHeader(shard.tensors_, Metadata{}));
  shard.buffer_offset_ = kSafetensorsLengthBytes + static_cast<int64_t>(header.size());
  const int64_t buffer = shard.tensors_.empty() ? 0 : shard.tensors_.back().end;
  shard.size_ = shard.buffer_offset_ + buffer;
  if (spare != nullptr && spare->size_ == shard.size_) {
    shard.bytes_ = std::move(spare->bytes_);
  } else {
    ASSIGN_OR_RETURN(shard.bytes_, TakeBytes(shard.size_));
  }
  const auto length = std::bit_cast<std::array<std::byte, 8>>(uint64_t{header.size()});
  std::memcpy(shard.bytes_.get(), length.data(), length.size());
  std::memcpy(shard.bytes_.get() + length.size(), header.data(), header.size());
  return shard;
}

std::span<std::byte> MemoryShard::Tensor(size_t index) {
  const TensorEntry& tensor = tensors_.at(index);
  return {bytes_.get() + buffer_offset_ + tensor.begin, static_cast<size_t>(tensor.bytes())};
}

std::optional<ShardInfo> MemoryShard::Digest(const std::function<bool()>& given_up) const {
  Sha256 whole;
  const auto add = [&](std::span<const std::byte> bytes, Sha256* also) {
    while (!bytes.empty() && !given_up()) {  // hashed twice while in the cache
      const auto piece = bytes.first(std::min(bytes.size(), size_t{1} << 20));
      whole.Update(piece);
      if (also != nullptr) also->Update(piece);
      bytes = bytes.subspan(piece.size());
      TickProgress();
    }
  };
  ShardInfo info;
  info.file = name_;
  info.bytes = size_;
  add(file().first(static_cast<size_t>(buffer_offset_)), nullptr);
  for (const TensorEntry& tensor : tensors_) {
    Sha256 digest;
    add(file().subspan(static_cast<size_t>(buffer_offset_ + tensor.begin),
                       static_cast<size_t>(tensor.bytes())),
        &digest);
    info.tensors.push_back({tensor, digest.Hex()});
  }
  info.sha256 = whole.Hex();
  if (given_up()) return std::nullopt;
  return info;
}

std::unique_ptr<ReadableFile> ReadableMemory(std::span<const std::byte> bytes, std::string path,
                                             std::shared_ptr<const void> keeps) {
  return std::make_unique<MemoryFile>(bytes, std::move(path), std::move(keeps));
}

}  // namespace stagecoach
