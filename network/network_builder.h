// NetworkBuilder: writes a network layer by layer, for the zoo and for lists of layers.
// Errors: INVALID_ARGUMENT with the layer's path in the job; the builder may not be used after one.
#ifndef STAGECOACH_NETWORK_NETWORK_BUILDER_H_
#define STAGECOACH_NETWORK_NETWORK_BUILDER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/layer_builder.h"
#include "network/network.h"
#include "network/shared_lists.h"

namespace stagecoach {

class NetworkBuilder {
 public:
  // branch_stddev: as LayerBuilder's.
  NetworkBuilder(double branch_stddev, NetworkFacts facts)
      : branch_stddev_(branch_stddev), facts_(facts) {}

  // Call it before the first layer is added.
  WireId Input(const std::string& name, ValueType type, int64_t classes);

  struct Naming {
    std::string label, function;  // NetworkLayer's
    std::string path;             // in the job, for errors
  };
  // Writes the calls of a layer and returns its outputs.
  using Write = std::function<absl::StatusOr<std::vector<ValueId>>(
      const std::vector<ValueId>& inputs, LayerBuilder& builder)>;
  absl::StatusOr<std::vector<WireId>> Add(const Naming& naming, const std::vector<WireId>& inputs,
                                          const Write& write);
  // Adds a layer that was written already. Its parameters and states have their names. Its graph's
  // inputs have the types of those wires.
  absl::StatusOr<std::vector<WireId>> Add(const Naming& naming, const std::vector<WireId>& inputs,
                                          BuiltLayer built);
  // Writes the calls of a layer that makes one value of x, and reads others beside it.
  using WriteOne = std::function<absl::StatusOr<ValueId>(ValueId x, LayerBuilder& builder)>;
  absl::StatusOr<WireId> Add(const Naming& naming, WireId input, const SideInputs<WireId>& sides,
                             const WriteOne& write);
  // Adds such a layer as a job lists it.
  absl::StatusOr<WireId> Add(const LayerSpec& spec, const std::string& path, WireId input,
                             const SideInputs<WireId>& sides = {});

  // Layers added from here on have this one.
  void SetBranchStddev(double branch_stddev) { branch_stddev_ = branch_stddev; }

  size_t wires() const { return network_.wires.size(); }
  const ValueType& type(WireId id) const { return network_.wire(id).type; }
  // Finish checks that all outputs of layers are used, and that the tuple at a cut fits a message.
  struct Ends {
    WireId output, targets;  // of the last layer; of the data source
    WireId auxiliary = {};   // Objective's, with its weight
    double auxiliary_weight = 0;
  };
  // The objective is set afterwards (network/objective_kind.h).
  absl::StatusOr<Network> Finish(const Ends& ends, const std::string& path);

 private:
  absl::Status CheckInputs(const std::vector<WireId>& inputs, const LayerGraph& graph) const;
  // Checks that all looked-up ids come from the data source, which keeps to its bound.
  absl::Status CheckIds(const std::vector<WireId>& inputs, const LayerGraph& graph) const;
  absl::Status CheckCuts(const std::string& path) const;

  double branch_stddev_;
  const NetworkFacts facts_;
  Network network_;
  int64_t parameters_ = 0;  // elements
  int64_t arrays_ = 0;      // parameters and states
  SharedLists lists_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NETWORK_BUILDER_H_
