// Optimizer: the synchronous update at the end of a step, parameter by parameter, so K-free.
// Ownership: owns its slots; borrows the parameters and the back end.
// Threads:   executor thread only.
// Units:     `applied` counts the updates that the slots have seen, as PyTorch does; skipped steps
//            do not count. The first Apply after a start with zero slots has 0 and t = 1.
#ifndef STAGECOACH_STAGE_CELL_OPTIMIZER_H_
#define STAGECOACH_STAGE_CELL_OPTIMIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "stage/layers/layer_runner.h"

namespace stagecoach {

struct OptimizerSlot {
  std::string name;  // global: "opt/<slot>/<layer>/<path>", for example "opt/m/0003/mlp.up.weight"
  Tensor value;      // F32
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every parameter with gradient_scale * gradient. Gradients are undefined afterwards, and
  // have to be zeroed.
  virtual void Apply(uint64_t applied, double learning_rate, double gradient_scale) = 0;
  virtual std::vector<OptimizerSlot> slots() = 0;

  // For an optimizer that averages the values and the states (averaging_optimizer.cc); the slots
  // are "average".
  virtual void BeginAverages() {}  // sets averages to the present values
  // Swaps values and averages. Only evaluation may run before they are swapped back. The caller
  // makes copies of the values in another type anew (Cell::RefreshCompute).
  virtual void SwapAverages() {}
};

// Errors: memory; UNIMPLEMENTED naming operation and back end if that has no kernel for the update.
// states: averaged but not optimized, as the running moments of batch norm. A step commits them
// before it is applied (Cell::CommitStates).
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(
    const OptimizerSpec& spec, std::vector<Parameter*> parameters, Backend& backend,
    const AverageSpec& average = {}, const std::vector<LayerState*>& states = {});

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_OPTIMIZER_H_
