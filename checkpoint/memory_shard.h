// MemoryShard: a shard in memory, byte for byte the file that a checkpoint would have. Its tensors
// are filled in place, so every byte is written once. A thread that has time hashes the content
// later.
// Ownership: owns its bytes.
// Threads:   thread-compatible; once filled, any number of threads may read it.
// Errors:    LayOut: INVALID_ARGUMENT as WriteSafetensors; RESOURCE_EXHAUSTED: no memory.
// See:       docs/formats.md, "Snapshots".
#ifndef STAGECOACH_CHECKPOINT_MEMORY_SHARD_H_
#define STAGECOACH_CHECKPOINT_MEMORY_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/shard.h"

namespace stagecoach {

class MemoryShard {
 public:
  // Lays out a shard. Sorts the tensors by name; does not read their bytes.
  // spare: if its file has the same size, its memory is reused. The spare must not be used
  // afterwards. Null: new memory.
  static absl::StatusOr<MemoryShard> LayOut(const ShardLayers& layers,
                                            std::vector<TensorSource> tensors,
                                            MemoryShard* spare = nullptr);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  std::span<std::byte> Tensor(size_t index);  // the bytes to fill; index into tensors()
  std::span<const std::byte> file() const { return {bytes_.get(), static_cast<size_t>(size_)}; }
  // Description and hashes of the present content. nullopt if `given_up` returns true; it is called
  // at least once a megabyte. Ticks progress.
  std::optional<ShardInfo> Digest(const std::function<bool()>& given_up) const;

 private:
  std::string name_;
  std::vector<TensorEntry> tensors_;
  std::unique_ptr<std::byte[]> bytes_;
  int64_t size_ = 0, buffer_offset_ = 0;
};

// Untouched memory; RESOURCE_EXHAUSTED if there is none.
absl::StatusOr<std::unique_ptr<std::byte[]>> TakeBytes(int64_t bytes);

// A file that reads `bytes`. `keeps` holds their owner, so they outlive the file.
std::unique_ptr<ReadableFile> ReadableMemory(std::span<const std::byte> bytes, std::string path,
                                             std::shared_ptr<const void> keeps);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_MEMORY_SHARD_H_
