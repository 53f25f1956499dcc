#include "stage/data/parallel/length_buckets.h"

#include <map>

#include "base/errors/check.h"

namespace stagecoach {

LengthBuckets::LengthBuckets(std::span<const PairLengths> pairs, int64_t most) {
  CHECK(!pairs.empty() && most > 0) << pairs.size() << " pairs, " << most << " buckets";
  struct Level {
    int64_t tokens = 0;
    PairLengths lengths;
  };
  std::map<int32_t, Level> levels;  // by longest()
  int64_t all = 0;
  for (const PairLengths& pair : pairs) {
    Level& level = levels[pair.longest()];
    level.tokens += pair.tokens();
    level.lengths = LargestOf(level.lengths, pair);
    all += pair.tokens();
  }
  // A group ends where its share of the tokens is reached.
  int64_t passed = 0, shares = 0;
  PairLengths lengths;
  for (const auto& [longest, level] : levels) {
    passed += level.tokens;
    lengths = LargestOf(lengths, level.lengths);
    if (const int64_t reached = passed * most / all; reached > shares) {
      groups_.push_back({longest, lengths});
      shares = reached;
    }
  }
}

int64_t LengthBuckets::BucketOf(const PairLengths& pair) const {
  const auto found =
      std::lower_bound(groups_.begin(), groups_.end(), pair.longest(),
                       [](const Group& group, int32_t longest) { return group.longest < longest; });
  CHECK(found != groups_.end()) << pair.longest();
  return found - groups_.begin();
}

std::optional<PairLengths> LengthBuckets::RoundedUp(const PairLengths& pair) const {
  for (const Group& group : groups_) {
    if (pair.FitInto(group.lengths)) return group.lengths;
  }
  return std::nullopt;
}

}  // namespace stagecoach
