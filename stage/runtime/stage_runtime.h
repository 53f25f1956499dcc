// StageRuntime: the one executor thread of a stage server and its command queue. All waits are
// here, each with a deadline. The gRPC service is a thin adapter over this class.
// Ownership: owns the back end, cell, optimizer, executor, links and data of the loaded job;
//            borrows connector, file system and clock, which outlive it.
// Threads:   public functions from any thread; they enqueue and return at once. `done` callbacks
//            run exactly once, on the executor thread, and must not block. Of a shard that is
//            written from its copy they run on the writer's thread. After a refusal by a full or
//            closed queue, or where a copy is written already, they run on the caller's thread,
//            before the call returns.
//            Snapshot copies under one mutex.
// Errors:    RESOURCE_EXHAUSTED when the command queue is full. ABORTED for an older incarnation
//            than the loaded one. FAILED_PRECONDITION for a step that is not the next one.
//            UNAVAILABLE when a link broke. DEADLINE_EXCEEDED when no stage of the job made
//            progress for progress_timeout_seconds. It names job, step, stage, micro-batch and the
//            message or work waited for. TellJobProgress brings the other stages' progress. While
//            the coordinator does not call it, the stage keeps waiting, up to ten minutes.
// Aborting:  an aborted or failed cell stays, but does nothing more: only a newer Load or a Release
//            helps. Loads of the aborted incarnation are refused. A Load that replaces the cell and
//            a Release of it also end its running step.
// Idempotence: Load, Run and WriteShard with the fence of the last finished one return its result
//            again.
#ifndef STAGECOACH_STAGE_RUNTIME_STAGE_RUNTIME_H_
#define STAGECOACH_STAGE_RUNTIME_STAGE_RUNTIME_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "base/threads/progress.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/local/local_shards.h"
#include "checkpoint/shard.h"
#include "plan/control.h"
#include "stage/executor/executor.h"
#include "stage/files/data_roots.h"
#include "stage/snapshot/snapshot_peers.h"
#include "stage/watch/trace_ring.h"

namespace stagecoach {

struct StageStatus {
  std::string state;         // "empty", "loading", "ready", "running", "aborted"
  Fence fence;               // of the loaded job
  uint64_t newest_term = 0;  // of all loads and aborts
  StageId stage;
  MicroBatchId micro_batch;
  Phase phase = Phase::kIdle;
  std::string waiting_for;  // while it loads: what it is at
  PhaseSeconds phases;
  MemoryUse memory;
  int64_t snapshot_bytes = 0;  // of shards kept in memory
  uint64_t progress =
      0;  // grows with every operation and piece of a file (base/threads/progress.h)
  uint64_t shard_progress = 0;  // changes while a copy of the shard is being written
  int64_t bad_records = 0;      // left out of the loaded data set
  std::optional<LinkStatistics> upstream, downstream;
};

class CurrentWork;

class StageRuntime {
 public:
  struct Options {
    // If no stage of the job has done an operation for this time, the step has failed.
    double progress_timeout_seconds = 30;
    int compute_nice = 10;  // I/O threads must outrank compute threads
    // A coordinator that knows of the drain sends its last commands within this time.
    double drain_idle_seconds = 2;
    ProgressCounter* progress = nullptr;  // borrowed, shared with other counts; null: its own
    CurrentWork* work = nullptr;          // borrowed; the executor's work; null: nobody asks
    // Borrowed, never null: the files that may be a job's data or initial weights.
    const DataRoots* data_roots = nullptr;
    ReadableFiles* weight_files = nullptr;
    // Borrowed; null: none. Loads read shards there before the file system's.
    LocalShards* local_shards = nullptr;
    LinkOptions link;
    SnapshotPeers* snapshot_peers = nullptr;  // borrowed; null: no snapshots are taken or fetched
    // Runs the hashing and sending of snapshots on another thread; false: it takes no more. Empty:
    // a thread of its own.
    std::function<bool(std::function<void()>)> snapshot_post;
    // The same for the writing of a copied shard.
    std::function<bool(std::function<void()>)> writer_post;
    std::function<int64_t()> free_memory;  // empty: as stage/snapshot/available_memory.h finds it
    TraceRing* trace = nullptr;            // borrowed; null: no spans
    // Seconds of one micro-batch's forward, recompute or backward; executor thread, must not block.
    std::function<void(Phase phase, double seconds)> on_micro_batch;
    // Called once, when the device has failed for this process, after the answer to the failed
    // command. On the executor thread; must not block. Later commands fail: restart the process.
    std::function<void(const absl::Status& reason)> on_fault;
  };
  StageRuntime(const Options& options, std::unique_ptr<Backend> backend, LinkConnector* connector,
               FileSystem* file_system, const Clock* clock);
  ~StageRuntime();

  void Load(LoadCommand command, std::function<void(absl::StatusOr<LoadResult>)> done);
  void Run(RunCommand command, std::function<void(absl::StatusOr<StepReport>)> done);
  // Ends the running step and closes the links if the fence is not older than the loaded one.
  // Acts at once, also while the executor waits. The cell stays until the next Load or Release.
  // UNAVAILABLE for a term above the coordinator's own, as for all commands.
  absl::Status Abort(const Fence& fence, const absl::Status& reason);
  // The coordinator's term, from its answer to each registration and renewal of the lease
  // (StageMailbox::KnowTerm).
  void KnowTerm(uint64_t term);
  // Of the step that a Run has copied (RunCommand::copy_shard), under the same fence: beside what
  // the executor does. Otherwise the executor writes the loaded cell, between two Runs.
  void WriteShard(WriteShardCommand command, std::function<void(absl::StatusOr<ShardInfo>)> done);
  void Release(const Fence& fence, std::function<void(absl::Status)> done);  // frees cell and links
  // Measures forward and backward of every layer for the micro-batch of the spec (equal layers
  // once), warm-up excluded. Call it only while no cell is loaded.
  void Profile(ProfileCommand command,
               std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done);
  // Shards of snapshots in this stage's memory: list a job's, read a part of one, add a part of the
  // neighbour's. They return at once; errors as SnapshotStore.
  std::vector<HeldShard> ListSnapshots(const std::string& job, const std::string& key) const;
  absl::Status ReadSnapshot(const SnapshotRange& range, std::span<std::byte> target) const;
  absl::Status PutSnapshot(const SnapshotPart& part);
  StageStatus Status() const;
  // A number that changes when any stage of the running job makes progress. The coordinator sends
  // it with each renewal of the lease. While it changes, a waiting stage keeps waiting.
  void TellJobProgress(uint64_t number, double lease_seconds);
  // From now on refuses new work as UNAVAILABLE, and lets the running command end. Then waits until
  // the coordinator has taken its cell back (Abort, Release) or is silent for drain_idle_seconds. It
  // waits at most `seconds` in all. Decisions without work and shards are still taken meanwhile.
  void Drain(double seconds);
  // The coordinator that loaded the cell is gone, and the next one loads anew. So Drain returns at
  // once, even if a command runs. EndDrain may come before Drain.
  void EndDrain();
  void Shutdown();  // ends the thread; pending commands answer CANCELLED

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_STAGE_RUNTIME_H_
