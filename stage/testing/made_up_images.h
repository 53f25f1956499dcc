// MadeUpImages: images and labels, or masks, drawn from a seed, for networks on images; a pure
// function of step and micro-batch. Ownership, threads: as BatchSource.
#ifndef STAGECOACH_STAGE_TESTING_MADE_UP_IMAGES_H_
#define STAGECOACH_STAGE_TESTING_MADE_UP_IMAGES_H_

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "network/network.h"
#include "stage/data/batch_source.h"

namespace stagecoach {

class MadeUpImages final : public BatchSource {
 public:
  struct Sizes {
    int64_t batch_size = 0, micro_batches = 0, evaluation_samples = 0;
    int64_t numbers = 0;  // of an image
    int64_t classes = 0;
    int64_t pixels = 1;  // of a mask
  };
  explicit MadeUpImages(const Sizes& sizes) : sizes_(sizes) {}

  const DatasetManifest& manifest() const override { return manifest_; }
  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    const int64_t i = micro_batch.value;
    return Draw(MicroBatchSize(sizes_.batch_size, sizes_.micro_batches, i),
                {.seed = 79, .step = static_cast<uint32_t>(step), .micro_batch = uint32_t(i)},
                names);
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    int64_t first = static_cast<int64_t>(batch) * sizes_.batch_size;
    for (int i = 0; i < micro_batch.value; ++i) {
      first += MicroBatchSize(sizes_.batch_size, sizes_.micro_batches, i);
    }
    const int64_t size = MicroBatchSize(sizes_.batch_size, sizes_.micro_batches, micro_batch.value);
    const int64_t left = std::max<int64_t>(sizes_.evaluation_samples - first, 0);
    return Draw(std::min(size, left), {.seed = 80, .micro_batch = static_cast<uint32_t>(first)},
                names);
  }
  int64_t evaluation_batches() const override {
    return (sizes_.evaluation_samples + sizes_.batch_size - 1) / sizes_.batch_size;
  }

 private:
  HostBatch Draw(int64_t samples, RandomStream stream, std::span<const std::string> names) const {
    HostBatch batch{.samples = samples, .arrays = {}};
    if (samples == 0) return batch;
    for (const std::string& name : names) {
      CHECK(name == "images" || name == "labels" || name == "masks") << name;
      std::vector<float> images;
      std::vector<int32_t> labels;
      if (name == "images") {
        stream.operation = 1;
        for (int64_t i = 0; i < samples * sizes_.numbers; ++i) {
          images.push_back(RandomNormal(stream, static_cast<uint64_t>(i)));
        }
      } else {
        stream.operation = 2;
        const int64_t targets = name == "masks" ? samples * sizes_.pixels : samples;
        for (int64_t i = 0; i < targets; ++i) {
          const uint32_t bits = RandomBits(stream, static_cast<uint64_t>(i));
          labels.push_back(static_cast<int32_t>(bits % static_cast<uint64_t>(sizes_.classes)));
        }
      }
      const auto bytes =
          name == "images" ? std::as_bytes(std::span(images)) : std::as_bytes(std::span(labels));
      batch.arrays.emplace_back(bytes.begin(), bytes.end());
    }
    return batch;
  }

  const Sizes sizes_;
  DatasetManifest manifest_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_MADE_UP_IMAGES_H_
