// Rules of the shapes that cuDNN's attention takes, as far as they are known without a card. The
// back end chooses by them, and the planner forecasts by them.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_RULES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_RULES_H_

#include <cstdint>

#include "devices/card/card_profile.h"

namespace stagecoach::cudnn {

// Backward passes on Hopper work in tiles of 128 keys. If the last tile is not full, they have gone
// wrong in several ways. For context % 128 == 64, rows with a log-sum-exp below -88.7 give NaN
// (cudnn-frontend #628, PyTorch #196678). Up to version 9.15, memory beyond the keys was read.
inline constexpr int64_t kTile = 128;
// On Ampere, backward passes take no wider heads. Loads have 16 bytes.
inline constexpr int64_t kWidestHead = 128, kHeadMultiple = 8;
// Repeatable backward passes store their score matrices, at most this much at once. A constant, as
// bits may depend on how the work is cut.
inline constexpr int64_t kScoreBytes = int64_t{256} << 20;

// For a forecast: a card that has a cuDNN version that may be used.
inline AttentionKernels Attention() {
  return {.name = "cuDNN",
          .precisions = {Precision::kBfloat16},
          .tile = kTile,
          .widest_head = kWidestHead,
          .head_multiple = kHeadMultiple,
          .score_bytes = kScoreBytes};
}

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_RULES_H_
