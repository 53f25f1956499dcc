// StageExecutor: interprets a stage's program on its cells. It never waits for a peer: Advance runs
// instructions until one cannot proceed, and returns; only StageRuntime waits. So one test thread
// can drive K executors in any seeded order with no network.
// Ownership: borrows cells, network, links, data and clocks for its life.
// Threads:   executor thread only.
// Units:     the loss counts as backward, norms and apply as optimizer; phase.h has the rest. A
//            micro-batch without samples is passed on as an empty message and computes nothing.
// Errors:    the first error ends the step; the caller closes the links with it. A message of
//            another step or micro-batch than the program expects is FAILED_PRECONDITION.
// See: docs/ARCHITECTURE.md, "A step".
#ifndef STAGECOACH_STAGE_EXECUTOR_EXECUTOR_H_
#define STAGECOACH_STAGE_EXECUTOR_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "plan/control.h"
#include "plan/schedules/schedule.h"
#include "stage/cell/cell.h"
#include "stage/data/batch_source.h"
#include "stage/link/link.h"
#include "stage/watch/phase_clock.h"

namespace stagecoach {

// One pass over the pipeline: a training step or one evaluation mini-batch.
struct StepWork {
  Fence fence;
  bool training = true;
  uint64_t evaluation_batch = 0;  // when not training
  const StageProgram* program = nullptr;
  double loss_scale = 1.0;          // of d_logits: 1 / (N * targets of a sample)
  LookAtLogits observer = nullptr;  // of an evaluation
};

// kAdvanced: stopped by the limit, or blocked, but messages that had waited have left.
enum class Progress { kAdvanced, kBlocked, kFinished };

class StageExecutor {
 public:
  // One of the stage's cells. Its links lead to the cells in front of it and behind it; null at the
  // ends of the pipeline, and where such a cell is on the same stage.
  struct CellParts {
    CellId id;
    Cell* cell = nullptr;
    Link* upstream = nullptr;
    Link* downstream = nullptr;
    StageId above, below;  // the stages that the links lead to
  };
  struct Parts {
    StageId stage;
    uint64_t seed = 0;
    std::vector<CellParts> cells;  // ascending
    int cells_of_pipeline = 1;     // of all stages
    Backend* backend = nullptr;
    const BatchSource* data = nullptr;  // where a cell reads inputs, and with the last cell
    const Network* network = nullptr;   // the cells'
    PhaseClock* phases = nullptr;
    const Clock* clock = nullptr;
    // Called with the objective's input for each micro-batch, before the objective runs. If the
    // head goes by chunks, called for each chunk. For tools that compare.
    std::function<void(MicroBatchId, const Tensor&)> on_output;
  };
  explicit StageExecutor(const Parts& parts);
  ~StageExecutor();

  void BeginStep(const StepWork& work);
  // Runs at most `instructions` of them, so that the caller can look around in between.
  absl::StatusOr<Progress> Advance(int instructions = std::numeric_limits<int>::max());
  // The message for which a blocked executor waits, for errors and status. For example "stage 1
  // waits for activation of micro-batch 3 from stage 0 (job a ... step 17)". Empty while running or
  // finished.
  std::string WaitingFor() const;
  MicroBatchId current_micro_batch() const;  // of the instruction at hand
  StepReport TakeReport();                   // after kFinished
  void Abandon();  // drop micro-batches and the step, after an error or abort
  // Since construction. A send that had waited and left counts too. Tests that drive executors by
  // hand see by the count which one advanced. A stage reports progress by base/threads/progress.h.
  uint64_t instructions_done() const;
  uint64_t stale_messages() const;  // dropped since construction

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_EXECUTOR_H_
