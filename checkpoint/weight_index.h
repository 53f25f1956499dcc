// WeightIndex: names the file of each tensor in a folder of sharded weights, as Hugging Face's
// libraries write it:
//   {"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00002.safetensors"}}
// Threads: pure functions.
// Errors:  DATA_LOSS: text that is no index, or names no plain file. Limits: 16 MiB, 100,000
//          tensors. Hostile texts are expected.
#ifndef STAGECOACH_CHECKPOINT_WEIGHT_INDEX_H_
#define STAGECOACH_CHECKPOINT_WEIGHT_INDEX_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

inline constexpr char kWeightIndexFile[] = "model.safetensors.index.json";
inline constexpr int64_t kMaxWeightIndexBytes = int64_t{16} << 20;

struct WeightIndex {
  int64_t total_bytes = 0;                   // of all tensors; a reader does not need it
  std::map<std::string, std::string> files;  // by tensor; names within the folder
};

absl::StatusOr<WeightIndex> ParseWeightIndex(std::string_view text);  // leaves total_bytes 0
std::string FormatWeightIndex(const WeightIndex& index);

// "model-00001-of-00003.safetensors" for shard 0 of 3; "model.safetensors" if there is one.
std::string WeightShardFile(int64_t shard, int64_t shards);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_WEIGHT_INDEX_H_
