#include "plan/costs/small_tensors.h"

#include <algorithm>

#include "base/numbers/saturate.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloat64Bytes = 8;
constexpr int64_t kLineBytes = 64;  // what is allocated comes in whole ones

}  // namespace

int64_t SmallTensorBytes(const Network& network, int first, int last, int64_t micro_batches,
                         const OptimizerSpec& optimizer) {
  int64_t parameters = 0, states = 0, values = 0, stashed = 0, slots = 0;
  for (int layer = first; layer < last; ++layer) {
    const NetworkLayer& at = network.layers[static_cast<size_t>(layer)];
    parameters += static_cast<int64_t>(at.parameters.size());
    for (const ParameterSpec& parameter : at.parameters) {
      slots += static_cast<int64_t>(OptimizerStates(optimizer, parameter.shape).size());
    }
    states += static_cast<int64_t>(at.states.size());
    values = std::max(values, static_cast<int64_t>(at.lists->values.size()));
    stashed += static_cast<int64_t>(at.lists->stash.size());
  }
  // Values, gradients, copies and slots are each of whole lines; so are stashes and the values of a
  // layer at work.
  int64_t lines = 3 * parameters + slots + 2 * states + values + 4;
  lines = SaturatingAdd(lines, SaturatingMultiply(stashed, micro_batches));
  int64_t bytes = SaturatingMultiply(kLineBytes, lines);
  bytes += kFloat64Bytes * parameters;  // norms of gradients
  if (last < static_cast<int>(network.layers.size())) return bytes;
  // Sums of the loss by micro-batch, of classes too where they are counted, and of an auxiliary
  // one.
  const bool counted = network.objective.has("mean_iou") || network.objective.has("per_class");
  const int64_t sums = static_cast<int64_t>(network.objective.sums.size()) + 4 +
                       (counted ? 3 * network.classes() : 0);
  return SaturatingAdd(bytes, SaturatingMultiply(2 * kFloat64Bytes * micro_batches, sums));
}

}  // namespace stagecoach
