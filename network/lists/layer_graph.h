// LayerGraph: one layer of a network as a value: its operations in order, and their operands. The
// sequence of layers is what a partition cuts (GPipe, section 2.1).
// Units and shapes: value ids index `values`. Inputs come first. Parameters, states and outputs of
//            calls follow, in the order in which the builder met them.
// Errors:    LayerWriter::Finish answers INVALID_ARGUMENT with the operation that does not fit. In
//            a graph that it returns, the inputs of a call are there before the call.
#ifndef STAGECOACH_NETWORK_LISTS_LAYER_GRAPH_H_
#define STAGECOACH_NETWORK_LISTS_LAYER_GRAPH_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "operations/operation.h"
#include "operations/value_type.h"

namespace stagecoach {

// An accumulator is no value of the graph: lists add it (network/lists/lists.h).
enum class Origin { kInput, kParameter, kState, kCall, kAccumulator };

struct Value {
  ValueType type;
  Origin origin = Origin::kCall;
  int index = 0;          // among values of one origin; 0 for outputs of calls
  bool constant = false;  // an input or parameter that no gradient goes back to
  friend bool operator==(const Value&, const Value&) = default;
};

struct LayerGraph {
  std::vector<Value> values;
  std::vector<ValueId> inputs, parameters, states, outputs;
  std::vector<Call> calls;
  friend bool operator==(const LayerGraph&, const LayerGraph&) = default;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id.value)]; }
};

// LayerWriter: writes the graph of a layer. The first error stays. Calls after it do nothing and
// give invalid ids.
class LayerWriter {
 public:
  // gradient: whether one is wanted, as when parameters lie in front of the layer.
  ValueId Input(ValueType type, bool gradient = true);
  // The next parameter of the layer. Operations read a kActivation parameter in the type that the
  // job computes in and a kFloat32 one as it is stored.
  ValueId Parameter(Element element, Shape shape, bool trained = true);
  // The next state, without a gradient: changed by the update rules of the calls that read it, or by
  // calls themselves (EmitChanging).
  ValueId State(Shape shape, Element element = Element::kFloat32);
  std::vector<ValueId> Emit(std::string_view operation, Attributes attributes,
                            std::vector<ValueId> inputs);
  // The same for a call that changes states.
  std::vector<ValueId> EmitChanging(std::string_view operation, Attributes attributes,
                                    std::vector<ValueId> inputs, std::vector<ValueId> states);
  // Streams of random numbers count 0, 1, 2, ... within a layer, over all pieces that can draw. A
  // piece takes its number even at rate 0, so turning one off leaves the others alone.
  int64_t TakeDraw() { return next_draw_++; }
  int64_t draws() const { return next_draw_; }

  // Type of an existing value: CHECKs that the call which makes it had no error.
  const ValueType& type(ValueId id) const;
  // Makes the last call add `trunk`, if that call makes only `output` and its operation has a form
  // with a sum. `output` keeps its id. Returns whether it did.
  bool AddToLast(ValueId output, ValueId trunk);
  const absl::Status& status() const { return status_; }  // the first error

  absl::StatusOr<LayerGraph> Finish(std::vector<ValueId> outputs);

 private:
  ValueId NewValue(ValueType type, Origin origin, int index);

  LayerGraph graph_;
  absl::Status status_;
  int64_t next_draw_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_LAYER_GRAPH_H_
