// Cell: F_k and B_k of the paper, the consecutive layers of one stage, and the life of every
// micro-batch in it:
//            absent -Forward-> boundary only -Recompute-> stashed -Backward-> absent
//            absent -Forward(keep)-> stashed -Backward-> absent
// If a forward will be recomputed, the last stage computes nothing in it, because nobody reads the
// logits before the recompute. If the last stage's head goes by chunks
// (network/passes/head_chunks.h), Loss runs the last layer forward and backward, EvaluateLoss
// forward. Forward, Evaluate and Recompute then stop before the last layer and return its input.
// Ownership: owns layers, parameters, boundary inputs, stashes and on the last stage the objective;
//            borrows the back end.
// Threads:   executor thread only.
// Units and shapes: tuples are those of WiresOfCell (network/network.h): inputs are `loaded` and
//            then `received`, outputs `sent`; their gradients have an order of their own.
// Errors:    RESOURCE_EXHAUSTED from the allocator. A call in the wrong state is a CHECK: the
//            schedule was validated.
#ifndef STAGECOACH_STAGE_CELL_CELL_H_
#define STAGECOACH_STAGE_CELL_CELL_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "stage/cell/chunked_head.h"
#include "stage/cell/objective_runner.h"
#include "stage/cell/tied_exchange.h"
#include "stage/layers/layer_runner.h"

namespace stagecoach {

class Cell {
 public:
  // Initial values of parameters and states by their names, instead of a draw. If the name has
  // values, the function fills `values` and returns true. Otherwise it returns false and leaves
  // `values` alone. If `values` is empty, it only tells whether the name has values.
  using Given =
      std::function<absl::StatusOr<bool>(const std::string& name, std::span<float> values)>;
  // Layers [first, last) of the network, initial weights drawn from the seed unless they are given.
  // Without a seed the weights are undefined: the caller must set all of them and the copies in
  // ties(), then call RefreshCompute(). Drawing takes long for large cells. Unless head is kWhole,
  // the last layer goes by chunks if the back end says so and the network allows it.
  enum class Head { kAsBackendSays, kWhole };
  static absl::StatusOr<std::unique_ptr<Cell>> Create(const Network& network, int first_layer,
                                                      int last_layer, std::optional<uint64_t> seed,
                                                      int micro_batches, Backend& backend,
                                                      const Given& given = nullptr,
                                                      Head head = Head::kAsBackendSays);
  ~Cell();

  // If this cell or an earlier one trains parameters, the last stage returns outputs only with
  // keep_stash. Otherwise nothing of the micro-batch is kept.
  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context, bool keep_stash);
  // Forward that keeps nothing, for evaluation.
  absl::StatusOr<Tensors> Evaluate(Tensors inputs, const ForwardContext& context);
  absl::Status Recompute(MicroBatchId micro_batch);
  absl::StatusOr<Tensors> Backward(MicroBatchId micro_batch, Tensors output_gradients);
  absl::StatusOr<Tensors> BackwardInput(MicroBatchId micro_batch, Tensors output_gradients);
  absl::Status BackwardWeight(MicroBatchId micro_batch);
  // The outputs of a recompute or kept forward of the last stage, whose loss is still to come.
  const Tensors& outputs(MicroBatchId micro_batch) const;
  // Adds the loss of that micro-batch. Returns the gradients of the outputs for Backward.
  absl::StatusOr<Tensors> Loss(MicroBatchId micro_batch, ObjectiveRunner::Targets targets,
                               const LookAtLogits& look);
  // Adds the loss of Evaluate's outputs to the objective's sums.
  absl::Status EvaluateLoss(const ForwardContext& context, Tensors outputs,
                            ObjectiveRunner::Targets targets, const LookAtLogits& look);

  void DropAllMicroBatches();  // after an abort
  // Merges the step's accumulators of the states into the states. Call it once, when the step is
  // applied.
  absl::Status CommitStates();
  void ZeroGradients();  // also clears the accumulators of the states
  // Sets Parameter::compute after values were set from outside (a checkpoint).
  void RefreshCompute();

  ObjectiveRunner* objective();  // null except on the last stage
  const CellWires& wires() const;
  int first_layer() const;
  int last_layer() const;
  bool has_backward() const;  // this cell or an earlier one trains parameters
  TiedExchange& ties();
  // In layer order; tied ones belong to their owner and are left out.
  std::vector<Parameter*> parameters();
  std::vector<Parameter*> trained();  // parameters that are trained
  std::vector<LayerState*> states();  // layer order
  // The tensors that operations read, by global name: parameters (a tied one has its owner's name)
  // and states.
  LayerRunner::Values Values() const;
  // One for each layer, in layer order.
  absl::StatusOr<std::vector<double>> LayerSquaredGradientNorms();

 private:
  struct State;
  explicit Cell(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_CELL_H_
