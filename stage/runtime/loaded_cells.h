// LoadedCells: everything a stage holds of one job between Load and Release: cells, optimizer, data,
// links, programs, executor, and how far the job has come.
// Ownership: owns all of it; borrows back end, connector, file system, roots of data and clocks.
// Threads:   executor thread only; the links' ready callback runs anywhere.
// Errors:    INVALID_ARGUMENT: spec, partition and stage do not fit together;
//            FAILED_PRECONDITION: the data set or the file of weights is not the expected one;
//            DATA_LOSS: checkpoint;
//            RESOURCE_EXHAUSTED: memory. A failed load leaves nothing behind.
#ifndef STAGECOACH_STAGE_RUNTIME_LOADED_CELLS_H_
#define STAGECOACH_STAGE_RUNTIME_LOADED_CELLS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/local/local_shards.h"
#include "plan/control.h"
#include "plan/schedules/schedule.h"
#include "stage/cell/optimizer.h"
#include "stage/executor/executor.h"
#include "stage/files/data_roots.h"
#include "stage/runtime/cell_writing.h"

namespace stagecoach {

struct LoadedCells {
  // A cell of the stage. Its links lead to the cells in front of it and behind it; null at the ends
  // of the pipeline, and where such a cell is on this stage.
  struct One {
    CellId id;
    std::unique_ptr<Cell> cell;
    std::unique_ptr<Link> upstream, downstream;
  };

  LoadCommand command;
  StageProgram training, evaluation;
  StageProgram first_evaluation;      // after an update: with the values of tied parameters
  std::unique_ptr<BatchSource> data;  // if it has the last cell or layers read inputs
  std::vector<One> cells;             // ascending
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<StageExecutor> executor;
  std::unique_ptr<CellWriting> writing;  // of the texts at hand; null: none
  LoadResult result;

  uint64_t next_step = 0;                      // steps decided so far
  std::optional<uint64_t> undecided;           // step whose gradients wait for a decision
  std::optional<ApplyDecision> last_decision;  // the one that led to next_step
  // `held`: the values in the parameters. `copied`: those in the copies of tied ones in other
  // cells, which are stale after an update.
  enum class Weights { kStale, kLive, kAverages };
  Weights held = Weights::kLive, copied = Weights::kLive;
  uint64_t stale_written = 0;  // messages of writing that has ended
  int64_t forecast_bytes = 0;  // of its peak memory, if it is on a host
  absl::Status aborted;        // not ok: only a newer Load helps

  ~LoadedCells();
  std::vector<Cell*> all_cells() const;
  std::vector<Link*> links() const;
  void CloseLinks(const absl::Status& reason);
  // Of what is at hand.
  std::string WaitingFor() const;
  uint64_t stale_messages() const;  // dropped since the load
  void EndWriting();
  MicroBatchId current_micro_batch() const;
  std::string Unconnected() const;  // neighbours that no link has reached yet, for an error
  // Whether the decision is still to be applied. FAILED_PRECONDITION: it is neither new nor the
  // last one.
  absl::StatusOr<bool> IsNew(const ApplyDecision& decision) const;
  // A no-op if it is the last one again.
  absl::Status Apply(const ApplyDecision& decision, Backend& backend);
  // Swaps the held values, if necessary. Call it before other work, but not after a program: tied
  // parameters that it has sent may still be on their way.
  void Hold(Weights weights);
  // If copies hold other values than the parameters, the program sends those of tied ones.
  const StageProgram& EvaluationProgram() const {
    return copied == held ? evaluation : first_evaluation;
  }
  const Network& network() const { return *command.network; }
  double loss_scale() const;  // 1 / (N * targets of a sample)
};

struct LoadingParts {
  Backend* backend = nullptr;
  LinkConnector* connector = nullptr;
  FileSystem* file_system = nullptr;    // of checkpoints
  LocalShards* local_shards = nullptr;  // read before these; null: none
  ReadableFiles* snapshot = nullptr;    // instead of a checkpoint; null: there is none
  const DataRoots* data_roots = nullptr;
  ReadableFiles* weight_files = nullptr;  // for initial weights
  PhaseClock* phases = nullptr;
  const Clock* clock = nullptr;
  LinkOptions link;
  std::function<void()> link_ready;
};

absl::StatusOr<std::unique_ptr<LoadedCells>> LoadCells(LoadCommand command,
                                                       const LoadingParts& parts);

// The allocator's account in the planner's kinds (workspace counts as activations).
StageMemory CurrentMemory(const MemoryUse& use);
StageMemory PeakMemory(const MemoryUse& use);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_LOADED_CELLS_H_
