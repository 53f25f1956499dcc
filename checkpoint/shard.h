// Shard: the file one stage writes of its layers: parameters and optimizer slots, as safetensors
// with K-free names. Named after its layers ("layer-0000-0007.safetensors"), never after its stage.
// A stage with several cells names them all ("layer-0000-0002-0004-0006.safetensors").
#ifndef STAGECOACH_CHECKPOINT_SHARD_H_
#define STAGECOACH_CHECKPOINT_SHARD_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/layer_range.h"
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

using ShardLayers = std::vector<LayerRange>;  // of a stage's cells, ascending
std::string ShardFileName(const ShardLayers& layers);

// Writes the tensors, sorted by name, into folder/ShardFileName(...); a leftover of the same name
// from an earlier attempt is replaced.
absl::StatusOr<ShardInfo> WriteShard(FileSystem& file_system, const std::string& folder,
                                     const ShardLayers& layers,
                                     std::vector<TensorSource> tensors);

// Writes the bytes of a shard that lies in memory into folder/info.file. DATA_LOSS unless they have
// info.sha256: nothing stays in the folder then.
absl::Status WriteShardBytes(FileSystem& file_system, const std::string& folder,
                             const ShardInfo& info, std::span<const std::byte> bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_SHARD_H_
