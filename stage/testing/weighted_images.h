// WeightedImages: a few samples with weights, for networks on images. They are the same in every
// mini-batch and for every M. WeightedNetwork: a network to train on them.
// Ownership, threads: as BatchSource.
#ifndef STAGECOACH_STAGE_TESTING_WEIGHTED_IMAGES_H_
#define STAGECOACH_STAGE_TESTING_WEIGHTED_IMAGES_H_

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "network/layers/activations.h"
#include "network/layers/convolution.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "network/objectives/mean_squared_error.h"
#include "network/zoo/sequence.h"
#include "stage/data/batch_source.h"

namespace stagecoach {

class WeightedImages final : public BatchSource {
 public:
  struct Sizes {
    int64_t micro_batches = 0;
    int64_t numbers = 0;  // of an image
    int64_t classes = 0;
  };
  // A weight for each sample of a mini-batch.
  WeightedImages(const Sizes& sizes, std::vector<float> weights)
      : sizes_(sizes), weights_(std::move(weights)) {}

  const DatasetManifest& manifest() const override { return manifest_; }
  absl::StatusOr<HostBatch> Train(uint64_t, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    const auto all = static_cast<int64_t>(weights_.size());
    int64_t first = 0;
    for (int i = 0; i < micro_batch.value; ++i) {
      first += MicroBatchSize(all, sizes_.micro_batches, i);
    }
    HostBatch batch{.samples = MicroBatchSize(all, sizes_.micro_batches, micro_batch.value),
                    .arrays = {}};
    for (const std::string& name : names) {
      batch.arrays.push_back(ArrayOf(name, first, batch.samples));
    }
    return batch;
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    return Train(batch, micro_batch, names);
  }
  int64_t evaluation_batches() const override { return 1; }
  // The number of reads of an input.
  int reads(const std::string& name) const { return reads_[name]; }

 private:
  template <typename T>
  static std::vector<std::byte> BytesOf(const std::vector<T>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return {bytes.begin(), bytes.end()};
  }

  std::vector<std::byte> ArrayOf(const std::string& name, int64_t first, int64_t samples) const {
    ++reads_[name];
    if (name == "weights") {
      return BytesOf(
          std::vector<float>(weights_.begin() + first, weights_.begin() + first + samples));
    }
    if (name == "labels") {
      std::vector<int32_t> labels;
      for (int64_t i = first; i < first + samples; ++i) {
        labels.push_back(static_cast<int32_t>((3 * i + 1) % sizes_.classes));
      }
      return BytesOf(labels);
    }
    CHECK_EQ(name, "images");
    std::vector<float> images;
    for (int64_t i = first * sizes_.numbers; i < (first + samples) * sizes_.numbers; ++i) {
      images.push_back(RandomNormal({.seed = 81}, static_cast<uint64_t>(i)));
    }
    return BytesOf(images);
  }

  const Sizes sizes_;
  const std::vector<float> weights_;
  DatasetManifest manifest_;
  mutable std::map<std::string, int> reads_;
};

inline constexpr int64_t kWeightedClasses = 4, kWeightedNumbers = 4 * 3 * 2;

// An autoencoder if the objective compares numbers, else a classifier.
inline Network WeightedNetwork(const KindSpec& objective, bool sample_weights,
                               Precision precision = Precision::kFloat32) {
  std::vector<LayerSpec> layers = {ConvolutionSpec{.out = 4, .kernel = {3}, .padding = {1}},
                                   ReluSpec{}};
  if (objective.kind == MeanSquaredErrorSpec::kKind) {
    layers.emplace_back(ConvolutionSpec{.out = 3, .kernel = {1}});
    layers.emplace_back(ConvolutionSpec{.out = 2, .kernel = {1}});
  } else {
    layers.emplace_back(FlattenSpec{});
    layers.emplace_back(LinearSpec{.out = kWeightedClasses});
  }
  NetworkSpec spec =
      SequenceSpec{.layers = layers, .image = {4, 3, 2}, .classes = kWeightedClasses};
  spec.objective = objective;
  absl::StatusOr<Network> network = ExpandNetwork(spec, precision);
  CHECK_OK(network.status());
  if (sample_weights) network = WithSampleWeights(*std::move(network), "weights");
  CHECK_OK(network.status());
  return *std::move(network);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_WEIGHTED_IMAGES_H_
