// MemoryShard: a shard in memory, byte for byte the file that a checkpoint would have. Its tensors are filled where they
// lie, so it is written once; what it contains is hashed later, on a thread that has the time.
// Ownership: owns its bytes.
// Threads:   thread-compatible; what is filled may be read by any number.
// Errors:    LayOut: INVALID_ARGUMENT as WriteSafetensors; RESOURCE_EXHAUSTED where the memory is not given.
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
#include "checkpoint/safetensors.h"
#include "checkpoint/shard.h"

namespace stagecoach {

class MemoryShard {
 public:
  // Of layers [first, last). The tensors are sorted here; nobody is asked for their bytes.
  // spare: whose memory is taken where it fits; null: none. It is not to be used any more.
  static absl::StatusOr<MemoryShard> LayOut(int first_layer, int last_layer,
                                            std::vector<TensorSource> tensors,
                                            MemoryShard* spare = nullptr);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  std::span<std::byte> Tensor(size_t index);  // to be filled; index into tensors()
  std::span<const std::byte> file() const { return {bytes_.get(), static_cast<size_t>(size_)}; }
  // Of what is in it now; nothing once `given_up`, asked every megabyte, says so. Ticks progress.
  std::optional<ShardInfo> Digest(const std::function<bool()>& given_up) const;

 private:
  std::string name_;
  std::vector<TensorEntry> tensors_;
  std::unique_ptr<std::byte[]> bytes_;
  int64_t size_ = 0, buffer_offset_ = 0;
};

// Memory that nobody has written to yet; RESOURCE_EXHAUSTED where it is not given.
absl::StatusOr<std::unique_ptr<std::byte[]>> TakeBytes(int64_t bytes);

// Reads what lies in memory. The bytes outlive it: `keeps` holds whoever owns them.
std::unique_ptr<ReadableFile> ReadableMemory(std::span<const std::byte> bytes, std::string path,
                                             std::shared_ptr<const void> keeps);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_MEMORY_SHARD_H_
