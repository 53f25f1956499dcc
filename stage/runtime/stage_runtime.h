// StageRuntime: the one executor thread of a stage server and its command queue. All waits are
// here, each with a deadline. The gRPC service is a thin adapter over this class.
// Ownership: owns the back end, cell, optimizer, executor, links and data of the loaded job;
//            borrows connector, file system and clock, which outlive it.
// Threads:   public functions from any thread; they enqueue and return at once. `done` callbacks
//            run exactly once, on the executor thread, and must not block. After a refusal by a
//            full or closed queue they run on the caller's thread, before the call returns.
//            Snapshot copies under one mutex.
// Errors:    RESOURCE_EXHAUSTED when the command queue is full. ABORTED for an older incarnation
//            than the loaded one. FAILED_PRECONDITION for a step that is not the next one.
//            UNAVAILABLE when a link broke. DEADLINE_EXCEEDED when no stage of the job made
//            progress for progress_timeout_seconds. It names job, step, stage, micro-batch and the
//            message or work waited for. TellJobProgress tells of the other stages. While it is
//            silent the stage waits on, up to ten minutes.
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
  std::string waiting_for;
  PhaseSeconds phases;
  MemoryUse memory;
  int64_t snapshot_bytes = 0;  // of shards that are kept in memory
  uint64_t progress =
      0;  // grows with every operation and piece of a file (base/threads/progress.h)
  int64_t bad_records = 0;  // that the loaded data set is without
  std::optional<LinkStatistics> upstream, downstream;
};

class CurrentWork;

class StageRuntime {
 public:
  struct Options {
    // A step in which no stage of the job has done an operation for so long has failed.
    double progress_timeout_seconds = 30;
    int compute_nice = 10;  // I/O threads must outrank compute threads
    // A coordinator that knows that a stage drains asks for what it still wants within this.
    double drain_idle_seconds = 2;
    ProgressCounter* progress = nullptr;  // borrowed, what others count too; null: its own
    CurrentWork* work = nullptr;          // borrowed; what the executor is doing; null: nobody asks
    // Borrowed, never null: what a job's data may be, and its weights to begin with.
    const DataRoots* data_roots = nullptr;
    ReadableFiles* weight_files = nullptr;
    LinkOptions link;
    SnapshotPeers* snapshot_peers = nullptr;  // borrowed; null: no snapshots are taken or fetched
    // What hashes and sends snapshots behind the executor; false: it takes no more. Empty: a thread
    // of its own.
    std::function<bool(std::function<void()>)> snapshot_post;
    std::function<int64_t()> free_memory;  // empty: as stage/snapshot/available_memory.h finds it
    TraceRing* trace = nullptr;            // borrowed; null: no spans
    // Seconds of one micro-batch's forward, recompute or backward; executor thread, must not block.
    std::function<void(Phase phase, double seconds)> on_micro_batch;
    // Once, when the device is lost to this process, after the command that met it was answered
    // with the reason; executor thread, must not block. Whatever comes then fails: start it anew.
    std::function<void(const absl::Status& reason)> on_fault;
  };
  StageRuntime(const Options& options, std::unique_ptr<Backend> backend, LinkConnector* connector,
               FileSystem* file_system, const Clock* clock);
  ~StageRuntime();

  void Load(LoadCommand command, std::function<void(absl::StatusOr<LoadResult>)> done);
  void Run(RunCommand command, std::function<void(absl::StatusOr<StepReport>)> done);
  // Ends the running step and closes the links if the fence is not older than the loaded one.
  // Acts at once, also while the executor waits. The cell stays until the next Load or Release.
  // UNAVAILABLE for a term above the coordinator's own, as of all commands.
  absl::Status Abort(const Fence& fence, const absl::Status& reason);
  // The coordinator's term by its own word, with each registration and renewal of the lease
  // (StageMailbox::KnowTerm).
  void KnowTerm(uint64_t term);
  void WriteShard(WriteShardCommand command, std::function<void(absl::StatusOr<ShardInfo>)> done);
  void Release(const Fence& fence, std::function<void(absl::Status)> done);  // frees cell and links
  // Measures forward and backward of every layer for the micro-batch of the spec (equal layers
  // once), warm-up excluded. Only while nothing is loaded.
  void Profile(ProfileCommand command,
               std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done);
  // Shards of snapshots that lie here: those of a job, a part of one, and parts of the neighbour's
  // that arrive. At once; errors as SnapshotStore.
  std::vector<HeldShard> ListSnapshots(const std::string& job, const std::string& key) const;
  absl::Status ReadSnapshot(const SnapshotRange& range, std::span<std::byte> target) const;
  absl::Status PutSnapshot(const SnapshotPart& part);
  StageStatus Status() const;
  // A number that changes when any stage of the running job makes progress. The coordinator tells
  // it with each renewal of the lease. While it changes, a waiting stage waits on.
  void TellJobProgress(uint64_t number, double lease_seconds);
  // From now on refuses new work as UNAVAILABLE, and lets the running command end. Then waits until
  // the coordinator has taken its cell back (Abort, Release) or leaves it alone for two seconds. It
  // waits at most `seconds` in all. Decisions without work and shards are still taken meanwhile.
  void Drain(double seconds);
  // The coordinator that loaded the cell is gone, and the next one loads anew: Drain returns at
  // once, whatever runs. Before it, the same.
  void EndDrain();
  void Shutdown();  // ends the thread; pending commands answer CANCELLED

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_STAGE_RUNTIME_H_
