// BucketOrder: the samples of each mini-batch to train on. It is a pure function of seed, epoch and
// data, so a resume needs the step alone, and the same for every number of micro-batches.
//
// With S samples and mini-batches of N, an epoch has floor(S / N) mini-batches, or one if S < N.
//   1. Each file gives its share of S, or of N if S < N: the next samples of its own permutations,
//      one behind the other. With sampling 1 the share is all its samples, once each.
//   2. S mod N samples of these are left out, drawn evenly.
//   3. The samples of each bucket are permuted and cut into mini-batches. What is left over, in the
//      order of the buckets, makes mixed ones, which have the lengths of their last bucket.
//   4. The mini-batches are permuted.
//
// Threads: thread-compatible, also where it is const: the plan of one epoch is kept, 4 bytes a
//          sample, and made anew for another epoch.
// Units:   samples count over all files, in the order of the files.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_BUCKET_ORDER_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_BUCKET_ORDER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stagecoach {

class BucketOrder {
 public:
  struct Parts {
    uint64_t seed = 0;
    int64_t batch_size = 0;
    double sampling = 1;           // 0 to 1
    std::vector<int64_t> files;    // the number of samples of each; positive
    std::vector<uint8_t> buckets;  // of each sample
  };
  explicit BucketOrder(Parts parts);

  int64_t epoch_batches() const { return epoch_batches_; }
  // Samples that each file gives to an epoch.
  const std::vector<int64_t>& shares() const { return shares_; }

  struct MiniBatch {
    std::span<const int32_t> samples;  // batch_size of them; valid until the next call
    int64_t bucket = 0;                // the last one among its samples' buckets
  };
  MiniBatch Train(uint64_t step) const;

 private:
  struct Epoch {
    uint64_t number = 0;
    std::vector<int32_t> samples;  // mini-batch after mini-batch
  };
  std::vector<int32_t> Drawn(uint64_t epoch) const;
  std::vector<int32_t> InBuckets(uint64_t epoch) const;
  Epoch Make(uint64_t number) const;

  const Parts parts_;
  const int64_t all_;    // samples
  const int64_t drawn_;  // for an epoch
  const int64_t epoch_batches_;
  const std::vector<int64_t> shares_;
  mutable std::optional<Epoch> epoch_;  // the last that was asked for
};

// Shares of `drawn` that files of so many samples have: in proportion to the power `sampling` of
// their shares of all samples; they sum up to `drawn`.
std::vector<int64_t> SampledShares(const std::vector<int64_t>& files, double sampling,
                                   int64_t drawn);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_BUCKET_ORDER_H_
