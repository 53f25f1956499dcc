// SampleOrder: the samples of a data set that make micro-batch (step, i). It is a pure function of
// the seed and the number of samples, for every source without buckets of lengths
// (stage/data/parallel/bucket_order.h). With S samples, let n = step * N +
// position. The n-th sample that a job trains on is PermuteIndex(seed, n / S, S, n % S). So each
// comes once an epoch. Evaluation takes the held-out samples 0, 1, 2, ... in order, the same ones
// every time.
// Threads: immutable.
#ifndef STAGECOACH_STAGE_DATA_SAMPLE_ORDER_H_
#define STAGECOACH_STAGE_DATA_SAMPLE_ORDER_H_

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

class SampleOrder {
 public:
  // CHECKs that there is a sample to train on.
  SampleOrder(const JobSpec& spec, int64_t train_samples, int64_t evaluation_samples);

  // Place among the samples to train on, and the number of the epoch.
  struct Place {
    int64_t sample = 0;
    uint64_t epoch = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> TrainPlaces(uint64_t step, MicroBatchId micro_batch) const;
  std::vector<int64_t> Train(uint64_t step, MicroBatchId micro_batch) const;  // their samples

  // Places [first, first + count) among the held-out ones; count may be 0 in the last mini-batch.
  struct Range {
    int64_t first = 0, count = 0;
  };
  Range Evaluation(uint64_t batch, MicroBatchId micro_batch) const;

  // The same within any whole mini-batch.
  Range ShareOf(MicroBatchId micro_batch) const;

  int64_t evaluation_batches() const { return evaluation_batches_; }  // min(spec's, the data's)

 private:
  const uint64_t seed_;
  const int64_t batch_size_, micro_batches_;
  const int64_t train_samples_, evaluation_samples_;
  const int64_t evaluation_batches_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SAMPLE_ORDER_H_
