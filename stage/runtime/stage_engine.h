// StageEngine: what the executor thread does with a command: load a cell, apply a decision, run a
// program, write a shard. It never waits for a neighbour's messages: StageRuntime is the thread,
// its waits and the queue around it, and a test may take turns with several engines on one thread.
// A load waits for what it reads: files, or parts of another stage's memory. SnapshotPeers has a
// deadline for each part.
// Ownership: owns the loaded cell; borrows the rest for its life.
// Threads:   executor thread only, but for snapshots, WriteCopy, Status and TellJobProgress (any
//            thread) and Close.
// Errors:    see StageRuntime.
#ifndef STAGECOACH_STAGE_RUNTIME_STAGE_ENGINE_H_
#define STAGECOACH_STAGE_RUNTIME_STAGE_ENGINE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/progress.h"
#include "stage/runtime/cell_snapshots.h"
#include "stage/runtime/job_news.h"
#include "stage/runtime/loaded_cells.h"
#include "stage/runtime/stage_mailbox.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/runtime/status_board.h"
#include "stage/snapshot/shard_writer.h"
#include "stage/watch/phase_clock.h"
#include "stage/watch/step_tracer.h"

namespace stagecoach {

class StageEngine {
 public:
  struct Parts {
    StageRuntime::Options options;
    Backend* backend = nullptr;
    LinkConnector* connector = nullptr;
    FileSystem* file_system = nullptr;
    const Clock* clock = nullptr;
    StageMailbox* mailbox = nullptr;
    ProgressCounter* progress = nullptr;
    std::function<void()> link_ready;
  };
  explicit StageEngine(const Parts& parts);

  absl::StatusOr<LoadResult> Load(LoadCommand command);
  // How a Run gets on.
  struct Going {
    std::optional<absl::StatusOr<StepReport>> answer;  // it has ended
    // Not 0: it waits for a neighbour. Call Advance again after a change that the mailbox is told
    // of, and after this time at the latest.
    std::chrono::nanoseconds wait{0};
  };
  Going Begin(const RunCommand& command);
  Going Advance();  // one more instruction; only after a Begin or Advance without an answer
  // Closes the links of a failed cell. A failed Run leaves them open, so that its answer, which has
  // the reason, goes out before the neighbours notice.
  void CloseLinks();
  absl::StatusOr<ShardInfo> WriteShard(const WriteShardCommand& command);
  // Writes the copy that a Run took for a checkpoint, beside what the executor does. False: there is
  // none under this fence; WriteShard, on the executor, writes the cell itself. As ShardWriter.
  bool WriteCopy(const WriteShardCommand& command, const ShardWriter::Done& done);
  absl::Status Release(const Fence& fence);
  absl::StatusOr<std::vector<LayerProfile>> Profile(const ProfileCommand& command);
  void HandleAbort();                // of a cell at rest
  void Drop();                       // the cell, at the end
  void Close() { writer_.Close(); }  // behind the executor's thread

  SnapshotStore& snapshots() { return snapshots_.store(); }  // any thread
  StageStatus Status() const;
  void TellJobProgress(uint64_t number, double lease_seconds) { news_.Tell(number, lease_seconds); }

 private:
  // The last finished command of a kind with its answer. If the command comes again, it gets this
  // answer.
  struct LastRun {
    RunCommand command;
    StepReport report;
  };
  struct CurrentRun {
    RunCommand command;
    PhaseClock::Nanos before;  // of the phases, when it began
    StallTimer stall;
    std::vector<ShownAnswer> shown = {};  // gathered for the report
    bool copied = false;                  // for a checkpoint
    std::string copy_note = {};
  };
  struct LastShard {
    WriteShardCommand command;
    ShardInfo info;
  };

  absl::Status Build(LoadCommand command);  // loaded_
  // Applies the decision and begins the program, without its first instruction.
  absl::Status Start(const RunCommand& command);
  Going End(absl::StatusOr<StepReport> report);  // of the Run at hand
  StepReport Finished(StepReport report);
  void BeginProgram(const RunCommand& command);
  absl::Status BeginWriting(const RunCommand& command);
  absl::Status CopyShard(const Fence& fence);
  absl::StatusOr<StepReport> TakeReport();
  absl::StatusOr<std::chrono::nanoseconds> Wait();
  absl::Status Interruption() const;
  // The error of a command. If it does not mention the device's fault, the fault goes in front.
  absl::Status WithFault(const absl::Status& status) const;
  void FailCell(const absl::Status& reason);  // the first error of a cell
  void EndCell(const absl::Status& reason);   // its links close with it

  const Parts parts_;
  StepTracer tracer_;
  PhaseClock phases_;  // tells tracer_
  std::unique_ptr<LoadedCells> loaded_;
  CellSnapshots snapshots_;
  ShardWriter writer_;
  bool copies_fail_ = false;  // since the last one that was taken; already reported
  std::optional<CurrentRun> run_;
  std::optional<LastRun> last_run_;
  std::optional<LastShard> last_shard_;
  JobNews news_;
  StatusBoard status_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_STAGE_ENGINE_H_
