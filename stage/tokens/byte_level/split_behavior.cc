#include "stage/tokens/byte_level/split_behavior.h"

#include <algorithm>
#include <utility>

namespace stagecoach {
namespace {

constexpr std::pair<std::string_view, SplitBehavior> kBehaviors[] = {
    {"Isolated", SplitBehavior::kIsolated},
    {"Removed", SplitBehavior::kRemoved},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
    {"Contiguous", SplitBehavior::kContiguous}};

struct Stretch {
  ByteRange range;
  bool match = false;
};

std::vector<Stretch> StretchesOf(size_t bytes, const std::vector<ByteRange>& matches, bool invert) {
  std::vector<Stretch> stretches;
  size_t end = 0;
  for (const ByteRange& match : matches) {
    if (match.begin != end) stretches.push_back({{end, match.begin}, invert});
    stretches.push_back({match, !invert});
    end = match.end;
  }
  if (end != bytes) stretches.push_back({{end, bytes}, invert});
  return stretches;
}

// Joins a stretch to the one before it where `joins` says so, of both.
template <typename Joins>
std::vector<ByteRange> Joined(const std::vector<Stretch>& stretches, Joins joins) {
  std::vector<ByteRange> parts;
  bool before = false;
  for (const Stretch& stretch : stretches) {
    if (!parts.empty() && joins(before, stretch.match)) {
      parts.back().end = stretch.range.end;
    } else {
      parts.push_back(stretch.range);
    }
    before = stretch.match;
  }
  return parts;
}

// The same from the end on.
std::vector<ByteRange> JoinedToNext(const std::vector<Stretch>& stretches) {
  std::vector<ByteRange> parts;
  bool behind = false;
  for (size_t i = stretches.size(); i-- > 0;) {
    if (!parts.empty() && stretches[i].match && !behind) {
      parts.back().begin = stretches[i].range.begin;
    } else {
      parts.push_back(stretches[i].range);
    }
    behind = stretches[i].match;
  }
  std::ranges::reverse(parts);
  return parts;
}

std::vector<ByteRange> Parts(const std::vector<Stretch>& stretches, SplitBehavior behavior) {
  std::vector<ByteRange> parts;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return Joined(stretches, [](bool, bool) { return false; });
    case SplitBehavior::kRemoved:
      for (const Stretch& stretch : stretches) {
        if (!stretch.match) parts.push_back(stretch.range);
      }
      return parts;
    case SplitBehavior::kMergedWithPrevious:
      return Joined(stretches, [](bool before, bool match) { return match && !before; });
    case SplitBehavior::kMergedWithNext:
      return JoinedToNext(stretches);
    case SplitBehavior::kContiguous:
      return Joined(stretches, [](bool before, bool match) { return match == before; });
  }
  return parts;
}

}  // namespace

std::optional<SplitBehavior> SplitBehaviorNamed(std::string_view name) {
  for (const auto& [known, behavior] : kBehaviors) {
    if (known == name) return behavior;
  }
  return std::nullopt;
}

std::vector<ByteRange> SplitParts(size_t bytes, const std::vector<ByteRange>& matches,
                                  SplitBehavior behavior, bool invert) {
  std::vector<ByteRange> parts = Parts(StretchesOf(bytes, matches, invert), behavior);
  std::erase_if(parts, [](const ByteRange& part) { return part.begin == part.end; });
  return parts;
}

}  // namespace stagecoach
