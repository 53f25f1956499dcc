// LayerBuilder: writes a layer for the kinds of network/layers: its calls, and its parameters with
// their names and initial values.
// Errors: INVALID_ARGUMENT with the field's path in the job, its value and the remedy.
#ifndef STAGECOACH_NETWORK_LAYER_BUILDER_H_
#define STAGECOACH_NETWORK_LAYER_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "network/layer_spec.h"
#include "network/lists/layer_graph.h"
#include "network/parameter.h"
#include "network/state.h"

namespace stagecoach {

inline constexpr double kInitStddev = 0.02;
// Deviation of a weight with this many inputs to each output, before a ReLU (He et al. 2015,
// 1502.01852).
double HeStddev(int64_t inputs);

// Prefix of the names of a layer's parameters and states: "model/0003/".
std::string NamePrefix(int layer_index);

// The place of a layer in a job.
struct LayerPlace {
  std::string path;    // in the job, for errors: "model.sequence.layers[3]"
  std::string prefix;  // of parameter names: "", "mlp.", "residual.linear2."
  int depth = 0;       // residuals around it
};

// Values beside a layer's rows that its attentions read. Invalid: there is none. Id: WireId or
// ValueId.
template <typename Id>
struct SideInputs {
  Id documents = {};  // the first row of each row's document: keys of causal attention
  Id length = {};     // how many of the rows exist: keys of full attention, in an encoder
  Id memory = {}, memory_length = {};  // an encoder's output, and how many of its rows exist
};

// Path of a field of a layer: "model.sequence.layers[3].linear.out".
std::string FieldPath(const LayerPlace& place, std::string_view kind, std::string_view field);

// Facts about the network that a layer may use.
struct NetworkFacts {
  int64_t vocabulary = 0;  // token ids
  int64_t width = 0;       // of the output of layers that read ids
  bool images = false;     // images as input: linear layers and convolutions begin with HeStddev
};

struct BuiltLayer {
  std::vector<ParameterSpec> parameters;
  std::vector<StateSpec> states;
  LayerGraph graph;
};

class LayerBuilder {
 public:
  // branch_stddev: see BranchStddev in network/layer_kinds.h.
  LayerBuilder(int layer_index, double branch_stddev, NetworkFacts network = {})
      : layer_index_(layer_index), branch_stddev_(branch_stddev), network_(network) {}

  LayerWriter& writer() { return writer_; }
  const NetworkFacts& network() const { return network_; }
  const SideInputs<ValueId>& side_inputs() const { return side_inputs_; }
  void SetSideInputs(const SideInputs<ValueId>& sides) { side_inputs_ = sides; }
  int64_t WidthOf(ValueId id) const { return writer_.type(id).shape.back(); }
  double BranchStddev(const LayerPlace& place) const {
    return place.depth > 0 ? branch_stddev_ : kInitStddev;
  }

  // Products read a weight in the type that the job computes in, statistics as it is stored.
  ValueId Weight(const LayerPlace& place, const char* name, Shape shape, double stddev);
  ValueId Bias(const LayerPlace& place, const char* name, Shape shape);  // zeros
  ValueId Float32(const LayerPlace& place, const char* name, Shape shape, ParameterSpec::Init init);

  // The parameter with this number, a weight of a norm, begins with zeros.
  void BeginAtZero(size_t parameter) {
    parameters_.at(parameter).init = ParameterSpec::Init::kZeros;
  }

  ValueId State(const LayerPlace& place, const char* name, Shape shape, float initial);

  absl::StatusOr<BuiltLayer> Finish(std::vector<ValueId> outputs);
  absl::StatusOr<BuiltLayer> Finish(ValueId output) { return Finish(std::vector{output}); }
  size_t parameters() const { return parameters_.size(); }
  absl::Status CheckSizes(const LayerPlace& place,
                          ValueId y) const;  // no array and no image is too large

 private:
  ValueId Add(const LayerPlace& place, const char* name, Shape shape, ParameterSpec::Init init,
              double stddev, Element element);
  std::string NameOf(const LayerPlace& place, const char* name) const;

  const int layer_index_;
  const double branch_stddev_;
  const NetworkFacts network_;
  SideInputs<ValueId> side_inputs_;
  LayerWriter writer_;
  std::vector<ParameterSpec> parameters_;
  std::vector<StateSpec> states_;
};

// Writes a layer of any kind and returns its output. A layer that reads ids must be given ids, and
// no other may be.
absl::StatusOr<ValueId> BuildLayer(const LayerSpec& spec, ValueId x, const LayerPlace& place,
                                   LayerBuilder& builder);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYER_BUILDER_H_
