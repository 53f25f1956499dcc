// Shard: the file one stage writes of its layers: parameters and optimizer slots, as safetensors
// with K-free names. Named after its layers ("layer-0000-0007.safetensors"), never after its stage.
#ifndef STAGECOACH_CHECKPOINT_SHARD_H_
#define STAGECOACH_CHECKPOINT_SHARD_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/safetensors/safetensors.h"

namespace stagecoach {

struct ShardTensor {
  TensorEntry entry;
  std::string sha256;
  friend bool operator==(const ShardTensor&, const ShardTensor&) = default;
};

struct ShardInfo {
  std::string file;  // name within the checkpoint folder
  int64_t bytes = 0;
  std::string sha256;  // of the file
  std::vector<ShardTensor> tensors;
  friend bool operator==(const ShardInfo&, const ShardInfo&) = default;
};

std::string ShardFileName(int first_layer, int last_layer);  // last exclusive

// Writes the tensors, sorted by name, into folder/ShardFileName(...); a leftover of the same name
// from an earlier attempt is replaced.
absl::StatusOr<ShardInfo> WriteShard(FileSystem& file_system, const std::string& folder,
                                     int first_layer, int last_layer,
                                     std::vector<TensorSource> tensors);

// Writes the bytes of a shard that lies in memory into folder/info.file. DATA_LOSS unless they have
// info.sha256: nothing stays in the folder then.
absl::Status WriteShardBytes(FileSystem& file_system, const std::string& folder,
                             const ShardInfo& info, std::span<const std::byte> bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_SHARD_H_
