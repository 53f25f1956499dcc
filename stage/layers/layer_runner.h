// LayerRunner: f_i of the paper and its derivative b_i, with its parameters w_i (GPipe, section
// 2.1). It runs the lists of calls that were derived from the layer's graph
// (network/lists/lists.h). It knows no kind of layer.
// Ownership: owns its parameters and states; the caller owns the stash of each micro-batch.
// Threads:   executor thread only.
// Units and shapes: inputs and outputs are tuples in the order of the graph's; activations [rows,
//            width]. Backward ADDS to parameter gradients. It folds the micro-batch's contribution
//            to the states into accumulators. The weight part does both, and nothing else. Backward
//            RETURNS the gradients of those inputs that have one.
// Errors:    RESOURCE_EXHAUSTED from the allocator. UNIMPLEMENTED from Create, naming the layer and
//            an operation without a kernel in the back end. Shapes are CHECKed (the network was
//            validated).
// Determinism: Forward is a function of (inputs, parameters, context): a recompute gives the same
//            bits.
#ifndef STAGECOACH_STAGE_LAYERS_LAYER_RUNNER_H_
#define STAGECOACH_STAGE_LAYERS_LAYER_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "network/lists/lists.h"
#include "network/network.h"
#include "stage/backends/backend.h"
#include "stage/backends/kernel.h"
#include "stage/layers/parameter.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

// A layer's data of one micro-batch, kept from forward to backward.
struct Stash {
  ForwardContext context;
  Tensors tensors;  // in the order of LayerLists::stash, after the input part of weight_stash
};

class LayerRunner {
 public:
  // The parameters' values that operations read, by global name: tied layers share them.
  using Values = std::map<std::string, Tensor>;
  // Allocates parameters, gradients and states; values are not yet set. `values`: those of the
  // cell's earlier layers, to which it adds its own; null if nothing is tied.
  static absl::StatusOr<std::unique_ptr<LayerRunner>> Create(const Network& network,
                                                             const NetworkLayer& layer,
                                                             Backend& backend,
                                                             Values* values = nullptr);

  // stash == nullptr: keep nothing (the micro-batch will be recomputed, or this is an evaluation).
  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context, Stash* stash);
  // Input part: leaves the weight part's tensors in the stash.
  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash);
  absl::Status BackwardWeight(Stash stash);
  // Both, with less memory. `into`: tensors for the gradients of the inputs; empty: in memory of
  // their own.
  absl::StatusOr<Tensors> Backward(Tensors output_gradients, Stash stash, Tensors into = {});

  // Merges the contributions of the step's micro-batches into the states.
  absl::Status CommitStates();

  // Adds this layer's tensors to `values`, as Cell::Values.
  void AddTo(Values* values) const;
  std::span<Parameter> parameters() { return parameters_; }
  std::span<LayerState> states() { return states_; }
  // Tensors that have to be zero when a step begins, as F32: zero is zero in any type.
  const Tensors& gathered() const { return gathered_; }

 private:
  // A prepared call. Its operands are places in the table.
  struct Step {
    const char* operation = nullptr;  // of lists_
    Kernel kernel;
    Operands inputs, outputs, adds;
    std::vector<const ValueType*> types;  // of the outputs
    const Tensor* in_place = nullptr;     // output 0 takes its memory
    std::vector<Tensor*> dropped;
  };
  struct Program {
    std::vector<Step> steps;
    std::vector<Tensor*> unused;
  };

  LayerRunner(std::shared_ptr<const LayerLists> lists, uint32_t index, DType dtype,
              Backend& backend)
      : lists_(std::move(lists)), index_(index), dtype_(dtype), backend_(backend) {}

  absl::Status AllocateParameters(const std::vector<ParameterSpec>& specs, Values* values);
  absl::Status AllocateValue(const ValueType& type, Values* values, Parameter* parameter);
  absl::Status AllocateStates(const std::vector<StateSpec>& specs);
  absl::Status PrepareLists();
  absl::StatusOr<Program> Prepare(const CallList& list);
  absl::StatusOr<Step> PrepareStep(const ListedCall& listed);
  Tensor& At(ValueId id) { return table_[static_cast<size_t>(id.value)]; }
  std::vector<Tensor*> Places(const std::vector<ValueId>& ids);
  // Place moves a tuple into the table, Collect takes one out. Invalid ids stand for missing
  // gradients.
  void Place(const std::vector<ValueId>& ids, Tensors tuple, const ForwardContext& context);
  Tensors Collect(const std::vector<ValueId>& ids);
  // Runs the program and returns `results`. Afterwards the table has only values that stay in it.
  absl::StatusOr<Tensors> Run(const Program& program, const ForwardContext& context,
                              const std::vector<ValueId>& results, const std::vector<ValueId>& kept,
                              Tensors* stash);
  absl::Status RunSteps(const Program& program, const ForwardContext& context);
  absl::Status MakeOutputs(const Step& step, const ForwardContext& context);
  void MakeTable();
  void Clear();

  const std::shared_ptr<const LayerLists> lists_;
  const uint32_t index_;
  const DType dtype_;
  Backend& backend_;
  std::vector<Parameter> parameters_;
  std::vector<LayerState> states_;
  Tensors accumulators_, gathered_;
  Tensors table_;                 // by value; parameters, their gradients and states stay in it
  std::vector<Tensor*> passing_;  // all others
  const Tensor* padded_ =
      nullptr;  // its rows are padded in training (network/passes/padded_output.h)
  Program forward_, forward_alone_, evaluation_, backward_, input_gradient_, weight_gradient_,
      commit_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_LAYER_RUNNER_H_
