// Cell: F_k and B_k of the paper, the consecutive layers of one stage, and the life of every
// micro-batch in it:
//            absent -Forward-> boundary only -Recompute-> stashed -Backward-> absent
//            absent -Forward(keep)-> stashed -Backward-> absent
// If a forward will be recomputed, the last stage computes nothing in it: nobody reads the logits
// before. If its head goes by chunks (network/passes/head_chunks.h), the loss runs the last layer,
// forward and back. The other functions stop before the head and return its input as the outputs.
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
  // some, it fills `values` and returns true. Otherwise it returns false and leaves them. Without
  // `values` it only says whether there are some.
  using Given =
      std::function<absl::StatusOr<bool>(const std::string& name, std::span<float> values)>;
  // Layers [first, last) of the model, initial weights drawn from the seed but where they are
  // given. Without a seed the weights are anything: the caller sets every one of them and the
  // copies of ties(), then calls RefreshCompute. For large cells the draw takes long. The last
  // layer goes by chunks where the back end says so and the network allows it, unless it is wanted
  // whole.
  enum class Head { kAsBackendSays, kWhole };
  static absl::StatusOr<std::unique_ptr<Cell>> Create(const Network& model, int first_layer,
                                                      int last_layer, std::optional<uint64_t> seed,
                                                      int micro_batches, Backend& backend,
                                                      const Given& given = nullptr,
                                                      Head head = Head::kAsBackendSays);
  ~Cell();

  // On the last stage gives nothing without keep_stash. Where nothing is trained here or before,
  // this is all that happens to the micro-batch: nothing of it is kept.
  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context, bool keep_stash);
  // Forward without a trace of it: for evaluation.
  absl::StatusOr<Tensors> Evaluate(Tensors inputs, const ForwardContext& context);
  absl::Status Recompute(MicroBatchId micro_batch);
  absl::StatusOr<Tensors> Backward(MicroBatchId micro_batch, Tensors output_gradients);
  absl::StatusOr<Tensors> BackwardInput(MicroBatchId micro_batch, Tensors output_gradients);
  absl::Status BackwardWeight(MicroBatchId micro_batch);
  // The outputs of a recompute or kept forward of the last stage, whose loss is still to come.
  const Tensors& outputs(MicroBatchId micro_batch) const;
  // The loss of such a micro-batch: what its backward begins with.
  absl::StatusOr<Tensors> Loss(MicroBatchId micro_batch, ObjectiveRunner::Targets targets,
                               const LookAtLogits& look);
  // Of what Evaluate gave.
  absl::Status EvaluateLoss(const ForwardContext& context, Tensors outputs,
                            ObjectiveRunner::Targets targets, const LookAtLogits& look);

  void DropAllMicroBatches();  // after an abort
  // What the step has gathered for states becomes a part of them: once, where it is applied.
  absl::Status CommitStates();
  void ZeroGradients();  // and what was gathered for states
  // After values were set from outside (a checkpoint): Parameter::compute follows.
  void RefreshCompute();

  ObjectiveRunner* objective();  // of the last stage; null on the others
  const CellWires& wires() const;
  int first_layer() const;
  int last_layer() const;
  bool has_backward() const;  // something is trained here or before
  TiedExchange& ties();
  // Parameters in layer order, without tied ones, which are their owner's, and the squared gradient
  // norm of each layer (double, layer order).
  std::vector<Parameter*> parameters();
  std::vector<Parameter*> trained();  // those that are
  std::vector<LayerState*> states();  // layer order
  absl::StatusOr<std::vector<double>> LayerSquaredGradientNorms();

 private:
  struct State;
  explicit Cell(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_CELL_H_
