// StageClient: how the coordinator reaches stages; services/ implements it over gRPC; tests use
// a fake fleet on virtual time.
// Ownership: borrowed by the job manager.
// Threads:   called from the job loop; `done` runs on any thread, exactly once, also after a
//            deadline or a broken connection, and must not block.
// Errors:    UNAVAILABLE (the stage is gone, or a different stage is at its address),
//            DEADLINE_EXCEEDED, ABORTED (older incarnation), or the stage's own error.
#ifndef STAGECOACH_COORDINATOR_LOOP_STAGE_CLIENT_H_
#define STAGECOACH_COORDINATOR_LOOP_STAGE_CLIENT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/shard.h"
#include "checkpoint/snapshot.h"
#include "coordinator/fleet/fleet.h"
#include "plan/control.h"

namespace stagecoach {

class StageClient {
 public:
  virtual ~StageClient() = default;
  virtual void Load(const StagePeer& stage, const LoadCommand& command, double deadline_seconds,
                    std::function<void(absl::StatusOr<LoadResult>)> done) = 0;
  virtual void Run(const StagePeer& stage, const RunCommand& command, double deadline_seconds,
                   std::function<void(absl::StatusOr<StepReport>)> done) = 0;
  virtual void WriteShard(const StagePeer& stage, const WriteShardCommand& command,
                          double deadline_seconds,
                          std::function<void(absl::StatusOr<ShardInfo>)> done) = 0;
  virtual void Profile(const StagePeer& stage, const ProfileCommand& command,
                       double deadline_seconds,
                       std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) = 0;
  // The shards of the job's snapshots that the stage has in memory, its own and others'.
  virtual void FindSnapshots(const StagePeer& stage, const std::string& job, const std::string& key,
                             double deadline_seconds,
                             std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) = 0;
  // Abort and Release: best effort; nobody waits for the result.
  virtual void Abort(const StagePeer& stage, const Fence& fence, const std::string& reason) = 0;
  virtual void Release(const StagePeer& stage, const Fence& fence) = 0;
  // A new process has registered as this stage, so an older connection may lead to a process that
  // is gone. Calls in progress continue.
  virtual void Reconnect(const StagePeer& stage) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_STAGE_CLIENT_H_
