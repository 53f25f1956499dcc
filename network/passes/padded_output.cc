#include "network/passes/padded_output.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/errors/check.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

constexpr int64_t kRowBytes = 16;  // one access of a card's memory

bool Contains(const std::vector<ValueId>& ids, ValueId id) {
  return std::count(ids.begin(), ids.end(), id) > 0;
}

template <typename Struct>
Struct Read(const Call& call) {
  const auto attributes = FromAttributes<Struct>(call.attributes);
  CHECK_OK(attributes.status());
  return *attributes;
}

// In this list nothing touches y but a plain linear that makes it.
bool OnlyMakes(const CallList& list, ValueId y) {
  bool made = false;
  for (const ListedCall& listed : list.calls) {
    const Call& call = listed.call;
    if (Contains(call.inputs, y) || Contains(call.adds, y)) return false;
    if (!Contains(call.outputs, y)) continue;
    if (call.operation != "linear" || listed.in_place.has_value()) return false;
    const auto linear = Read<LinearAttributes>(call);
    if (linear.bias || linear.residual || linear.gelu) return false;
    made = true;
  }
  return made;
}

// In this list nothing reads dy but plain gradients of a linear, and nothing takes its memory.
bool OnlyDerives(const CallList& list, ValueId dy) {
  for (const ListedCall& listed : list.calls) {
    const Call& call = listed.call;
    if (Contains(call.outputs, dy) || Contains(call.adds, dy)) return false;
    if (!Contains(call.inputs, dy)) continue;
    const bool first =
        call.inputs[0] == dy && std::count(call.inputs.begin(), call.inputs.end(), dy) == 1;
    if (!first || listed.in_place == 0) return false;
    if (call.operation == "linear_input_gradient") {
      if (Read<LinearInputGradientAttributes>(call).gelu) return false;
    } else if (call.operation != "linear_weight_gradient" ||
               Read<LinearWeightGradientAttributes>(call).bias) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<ValueId> PaddableOutput(const Network& network, const NetworkLayer& layer) {
  const Objective& objective = network.objective;
  if (objective.operation != "cross_entropy" || layer.outputs.size() != 1 ||
      layer.outputs[0] != objective.output) {
    return std::nullopt;
  }
  for (const NetworkLayer& other : network.layers) {
    if (std::count(other.inputs.begin(), other.inputs.end(), objective.output) > 0)
      return std::nullopt;
  }
  const LayerLists& lists = *layer.lists;
  const ValueId y = lists.outputs[0], dy = lists.output_gradients[0];
  const bool plain = dy.valid() && !Contains(lists.stash, y) && OnlyMakes(lists.forward, y) &&
                     OnlyMakes(lists.forward_alone, y) && OnlyDerives(lists.backward, dy) &&
                     OnlyDerives(lists.input_gradient, dy) &&
                     OnlyDerives(lists.weight_gradient, dy);
  if (!plain || lists.value(y).type.shape.rank() == 0) return std::nullopt;
  return y;
}

int64_t PaddedColumns(int64_t columns, DType dtype) {
  const int64_t whole = kRowBytes / DTypeSize(dtype);
  return (columns + whole - 1) / whole * whole;
}

int64_t PaddingBytes(const Network& network, int first, int last, int64_t batch_size) {
  const DType dtype = ComputeDType(network.precision);
  int64_t bytes = 0;
  for (int layer = first; layer < last; ++layer) {
    const NetworkLayer& at = network.layers[static_cast<size_t>(layer)];
    const std::optional<ValueId> y = PaddableOutput(network, at);
    if (!y.has_value()) continue;
    const Shape& shape = at.lists->value(*y).type.shape;
    const int64_t row = (PaddedColumns(shape.back(), dtype) - shape.back()) * DTypeSize(dtype);
    int64_t own = 0;
    if (__builtin_mul_overflow(batch_size, shape.elements() / shape.back() * row, &own)) {
      return std::numeric_limits<int64_t>::max();
    }
    bytes += own;  // one layer has the output
  }
  return bytes;
}

}  // namespace stagecoach
