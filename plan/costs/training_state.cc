#include "plan/costs/training_state.h"

#include "base/numbers/saturate.h"
#include "network/stored.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

constexpr int64_t kElementBytes = 4;
// Of a tensor in the header, with a name of 256 bytes and eight extents, each more than it can be.
constexpr int64_t kEntryBytes = 2048;

struct Sum {
  int64_t elements = 0, tensors = 0;
  void Add(const Shape& shape, int64_t times) {
    elements = SaturatingAdd(elements, SaturatingMultiply(shape.elements(), times));
    tensors += times;
  }
};

void AddLayer(const NetworkLayer& layer, const TrainingSpec& training, Sum* sum) {
  for (const ParameterSpec& parameter : layer.parameters) {
    if (!IsStored(parameter)) continue;
    sum->Add(parameter.shape, 1);
    if (!parameter.trained) continue;
    for (const OptimizerState& state : TrainingStates(training, parameter.shape)) {
      sum->Add(state.shape, 1);
    }
  }
  const bool averages = training.average.decay > 0;
  for (const StateSpec& state : layer.states) sum->Add(state.shape, averages ? 2 : 1);
}

Sum SumOf(const Network& network, const TrainingSpec& training,
          const std::vector<LayerRange>& cells) {
  Sum sum;
  for (const LayerRange& cell : cells) {
    for (int layer = cell.first; layer < cell.last; ++layer) {
      AddLayer(network.layers[static_cast<size_t>(layer)], training, &sum);
    }
  }
  return sum;
}

}  // namespace

int64_t TrainingStateBytes(const Network& network, const TrainingSpec& training,
                           const std::vector<LayerRange>& cells) {
  return SaturatingMultiply(SumOf(network, training, cells).elements, kElementBytes);
}

int64_t MostShardBytes(const Network& network, const TrainingSpec& training,
                       const std::vector<LayerRange>& cells) {
  const Sum sum = SumOf(network, training, cells);
  return SaturatingAdd(SaturatingMultiply(sum.elements, kElementBytes),
                       SaturatingMultiply(sum.tensors + 1, kEntryBytes));
}

}  // namespace stagecoach
