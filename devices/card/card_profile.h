// CardProfile: facts about a card for descriptions of its calls. A stage registers the profile, as
// only the stage knows its card's library.
// Units:     bytes.
#ifndef STAGECOACH_DEVICES_CARD_CARD_PROFILE_H_
#define STAGECOACH_DEVICES_CARD_CARD_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/precision.h"

namespace stagecoach {

// Workspace of one operation at a time, taken at the start.
inline constexpr int64_t kCardWorkspaceBytes = int64_t{32} << 20;

// Attention of a library: the shapes that it may be asked for, and the memory of its repeatable
// backward passes. Only the card knows whether the library takes a shape in the end.
struct AttentionKernels {
  std::string name;                   // for people
  std::vector<Precision> precisions;  // no others; nor anything with dropout
  int64_t tile = 1;                   // contexts of whole tiles
  int64_t widest_head = 0, head_multiple = 1;
  // Most bytes of score matrices at once, unless one head needs more. Backward passes store two
  // bytes for each pair of rows of each head.
  int64_t score_bytes = 0;
  friend bool operator==(const AttentionKernels&, const AttentionKernels&) = default;
};

struct CardProfile {
  std::optional<AttentionKernels> attention;  // none: own kernels, which take nothing beside
  friend bool operator==(const CardProfile&, const CardProfile&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_CARD_CARD_PROFILE_H_
