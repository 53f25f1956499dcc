#include "network/passes/head_chunks.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "network/passes/padded_output.h"

namespace stagecoach {
namespace {

const ValueType& LogitsType(const Network& network) {
  return network.wire(network.objective.output).type;
}

int64_t TimesOrMost(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return std::numeric_limits<int64_t>::max();
}

void MakeRowsSamples(ValueType* type) {
  if (type->leading == Leading::kSamples) type->shape = Shape{type->shape.back()};
}

}  // namespace

bool HeadGoesByChunks(const Network& network) {
  const NetworkLayer& head = network.layers.back();
  if (!PaddableOutput(network, head).has_value()) return false;
  const LayerLists& lists = *head.lists;
  const bool one_call = lists.forward.calls.size() == 1 && lists.evaluation.calls.size() == 1;
  if (!one_call || head.inputs.size() != 1 || !head.states.empty()) return false;
  // What the data source gives is loaded by who runs the layers, and has no gradient.
  if (network.IsInput(head.inputs[0]) || network.objective.auxiliary.valid()) return false;
  const ValueType& x = network.wire(head.inputs[0]).type;
  return x.leading == Leading::kSamples && x.shape.rank() > 0 &&
         x.shape.back() < LogitsType(network).shape.back();
}

int64_t HeadChunkRows(const Network& network, const HeadChunkLimits& limits) {
  const DType dtype = ComputeDType(network.precision);
  const int64_t row = PaddedColumns(LogitsType(network).shape.back(), dtype) * DTypeSize(dtype);
  const int64_t most = std::max({limits.bytes / row, limits.least_rows, int64_t{1}});
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
}

int64_t HeadRows(const Network& network, int64_t samples) {
  const Shape& shape = LogitsType(network).shape;
  return TimesOrMost(samples, shape.elements() / shape.back());
}

int64_t HeadChunkBytes(const Network& network, const HeadChunkLimits& limits, int64_t samples,
                       bool evaluation) {
  const DType dtype = ComputeDType(network.precision);
  const int64_t classes = LogitsType(network).shape.back();
  const int64_t columns = evaluation ? classes : PaddedColumns(classes, dtype);
  const int64_t rows = std::min(HeadRows(network, samples), HeadChunkRows(network, limits));
  return TimesOrMost(rows, columns * DTypeSize(dtype));
}

Network HeadByRows(const Network& network) {
  CHECK(HeadGoesByChunks(network)) << "the head of this network";
  Network by_rows = network;
  NetworkLayer& head = by_rows.layers.back();
  LayerLists lists = *head.lists;
  for (Value& value : lists.values) MakeRowsSamples(&value.type);
  head.lists = std::make_shared<const LayerLists>(std::move(lists));
  for (const WireId id : {head.inputs[0], by_rows.objective.output}) {
    MakeRowsSamples(&by_rows.wires[static_cast<size_t>(id.value)].type);
  }
  by_rows.objective.target_type.shape = Shape();  // an id for each row
  return by_rows;
}

}  // namespace stagecoach
