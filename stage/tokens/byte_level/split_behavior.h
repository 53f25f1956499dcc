// SplitBehavior: what becomes of the matches of a pattern, at which a text is cut:
//   isolated:             each match is a part
//   removed:              the matches are left out
//   merged_with_previous: a match belongs to the part before it
//   merged_with_next:     a match belongs to the part behind it
//   contiguous:           matches in a row are one part
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_SPLIT_BEHAVIOR_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_SPLIT_BEHAVIOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "stage/tokens/byte_level/pattern.h"

namespace stagecoach {

enum class SplitBehavior : uint8_t {
  kIsolated,
  kRemoved,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,
};

// "MergedWithNext".
std::optional<SplitBehavior> SplitBehaviorNamed(std::string_view name);

// The parts of a text of so many bytes. matches: in order. invert: what stands between the matches
// counts as matches.
std::vector<ByteRange> SplitParts(size_t bytes, const std::vector<ByteRange>& matches,
                                  SplitBehavior behavior, bool invert);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_SPLIT_BEHAVIOR_H_
