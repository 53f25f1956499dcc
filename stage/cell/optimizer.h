// Optimizer: the synchronous update at the end of a step; elementwise, so K-free.
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
  Tensor value;      // F32, the parameter's shape
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every parameter with gradient_scale * gradient. Gradients may be anything afterwards,
  // and have to be zeroed.
  virtual void Apply(uint64_t applied, double learning_rate, double gradient_scale) = 0;
  virtual std::vector<OptimizerSlot> slots() = 0;

  // Of one that keeps averages of the values and of the states (averaging_optimizer.cc); their
  // slots are "average".
  virtual void BeginAverages() {}  // the values as they are now
  // Values and averages change places. Only what reads may run before they have changed back; who
  // reads copies of the values in another type makes them anew (Cell::RefreshCompute).
  virtual void SwapAverages() {}
};

// states: which only averages follow, as the running moments of batch norm. What a step makes of
// them has to be there when it is applied (Cell::CommitStates).
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(
    const OptimizerSpec& spec, std::vector<Parameter*> parameters, Backend& backend,
    const AverageSpec& average = {}, const std::vector<LayerState*>& states = {});

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_OPTIMIZER_H_
