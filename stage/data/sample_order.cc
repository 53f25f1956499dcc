#include "stage/data/sample_order.h"

#include <algorithm>

#include "base/errors/check.h"
#include "base/numbers/random.h"

namespace stagecoach {

SampleOrder::SampleOrder(const JobSpec& spec, int64_t train_samples, int64_t evaluation_samples)
    : seed_(spec.seed),
      batch_size_(spec.training.batch_size),
      micro_batches_(spec.training.micro_batches),
      train_samples_(train_samples),
      evaluation_samples_(evaluation_samples),
      evaluation_batches_(
          std::min(spec.evaluation.batches, (evaluation_samples + batch_size_ - 1) / batch_size_)) {
  CHECK(batch_size_ > 0 && micro_batches_ > 0) << "the job was validated before";
  CHECK(train_samples > 0) << train_samples;
}

std::vector<int64_t> SampleOrder::Train(uint64_t step, MicroBatchId micro_batch) const {
  std::vector<int64_t> samples;
  for (const Place& place : TrainPlaces(step, micro_batch)) samples.push_back(place.sample);
  return samples;
}

std::vector<SampleOrder::Place> SampleOrder::TrainPlaces(uint64_t step,
                                                         MicroBatchId micro_batch) const {
  const Range share = ShareOf(micro_batch);
  const auto all = static_cast<uint64_t>(train_samples_);
  const uint64_t first =
      step * static_cast<uint64_t>(batch_size_) + static_cast<uint64_t>(share.first);
  std::vector<Place> places;
  places.reserve(static_cast<size_t>(share.count));
  for (int64_t i = 0; i < share.count; ++i) {
    const uint64_t n = first + static_cast<uint64_t>(i);
    const uint64_t epoch = n / all;
    places.push_back(
        {.sample = static_cast<int64_t>(PermuteIndex(seed_, epoch, all, n % all)), .epoch = epoch});
  }
  return places;
}

SampleOrder::Range SampleOrder::Evaluation(uint64_t batch, MicroBatchId micro_batch) const {
  CHECK_LT(batch, static_cast<uint64_t>(evaluation_batches_)) << "evaluation mini-batch";
  const Range share = ShareOf(micro_batch);
  const int64_t first = static_cast<int64_t>(batch) * batch_size_ + share.first;
  return {.first = first,
          .count = std::clamp<int64_t>(evaluation_samples_ - first, 0, share.count)};
}

SampleOrder::Range SampleOrder::ShareOf(MicroBatchId micro_batch) const {
  CHECK(micro_batch.valid() && micro_batch.value < micro_batches_)
      << "micro-batch " << micro_batch.value << " of " << micro_batches_;
  Range share;
  for (int64_t i = 0; i < micro_batch.value; ++i) {
    share.first += MicroBatchSize(batch_size_, micro_batches_, i);
  }
  share.count = MicroBatchSize(batch_size_, micro_batches_, micro_batch.value);
  return share;
}

}  // namespace stagecoach
