#include "stage/executor/target_weights.h"

#include <cstdint>
#include <cstring>

#include "base/errors/check.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {
namespace {

template <typename T>
std::vector<T> NumbersOf(const std::vector<std::byte>& array) {
  std::vector<T> numbers(array.size() / sizeof(T));
  std::memcpy(numbers.data(), array.data(), numbers.size() * sizeof(T));
  return numbers;
}

}  // namespace

TargetWeights::TargetWeights(const Network& network) : objective_(network.objective) {
  const bool classes = objective_.target_type.element == Element::kIds;
  terms_ = network.targets() / LossWeightsType(objective_.target_type).shape.elements();
  reads_targets_ = classes && (objective_.ignored.has_value() || !objective_.class_weights.empty());
  if (reads_targets_) names_.push_back(network.input(objective_.targets).name);
  if (objective_.weights.valid()) names_.push_back(network.input(objective_.weights).name);
}

// An id that is no class is for the loss to find.
float TargetWeights::OfClass(int32_t id) const {
  if (objective_.ignored == id) return 0.0f;
  const std::vector<float>& weights = objective_.class_weights;
  const bool known = id >= 0 && static_cast<size_t>(id) < weights.size();
  return known ? weights[static_cast<size_t>(id)] : 1.0f;
}

std::vector<float> TargetWeights::Of(const HostBatch& batch) const {
  const ValueType type = LossWeightsType(objective_.target_type);
  const int64_t of_sample = TypeElements(type, {1, batch.lengths});
  std::vector<float> weights(static_cast<size_t>(batch.samples * of_sample), 1.0f);
  if (batch.samples == 0) return weights;
  CHECK_EQ(batch.arrays.size(), names_.size());
  if (reads_targets_) {
    const std::vector<int32_t> ids = NumbersOf<int32_t>(batch.arrays.front());
    CHECK_EQ(ids.size(), weights.size());
    for (size_t i = 0; i < ids.size(); ++i) weights[i] = OfClass(ids[i]);
  }
  if (objective_.weights.valid()) {
    const std::vector<float> of_samples = NumbersOf<float>(batch.arrays.back());
    CHECK_EQ(static_cast<int64_t>(of_samples.size()), batch.samples);
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] *= of_samples[i / static_cast<size_t>(of_sample)];
    }
  }
  return weights;
}

}  // namespace stagecoach
