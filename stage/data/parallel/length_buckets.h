// LengthBuckets: groups of pairs of like lengths, so that a mini-batch of one group has little
// padding. A pair's group is found by the longer of its two sides. Groups have about equal numbers
// of tokens, so those of short pairs have more pairs. A mini-batch of a group has the lengths of
// the group, so a job has no more lengths than groups.
// Threads: immutable.
// Units:   tokens; groups count from 0, the shortest first.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_LENGTH_BUCKETS_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_LENGTH_BUCKETS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stagecoach {

struct PairLengths {
  int32_t source = 0, target = 0;
  int32_t longest() const { return std::max(source, target); }
  int64_t tokens() const { return int64_t{source} + target; }
  bool FitInto(const PairLengths& larger) const {
    return source <= larger.source && target <= larger.target;
  }
  friend bool operator==(const PairLengths&, const PairLengths&) = default;
};
inline PairLengths LargestOf(const PairLengths& a, const PairLengths& b) {
  return {std::max(a.source, b.source), std::max(a.target, b.target)};
}

class LengthBuckets {
 public:
  // pairs: at least one. Makes at most `most` groups, none of them empty.
  LengthBuckets(std::span<const PairLengths> pairs, int64_t most);

  int64_t count() const { return static_cast<int64_t>(groups_.size()); }
  // Of one of the pairs.
  int64_t BucketOf(const PairLengths& pair) const;
  // The largest source and target in it and all groups before it.
  const PairLengths& lengths(int64_t bucket) const {
    return groups_[static_cast<size_t>(bucket)].lengths;
  }
  // The smallest lengths of a group into which these fit; nullopt: there are none.
  std::optional<PairLengths> RoundedUp(const PairLengths& pair) const;

 private:
  struct Group {
    int32_t longest = 0;  // of its pairs; those of the groups before are shorter
    PairLengths lengths;
  };
  std::vector<Group> groups_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_LENGTH_BUCKETS_H_
