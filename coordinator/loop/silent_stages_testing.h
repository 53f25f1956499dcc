// SilentStages: for tests of a manager whose stages are never asked for anything, or never answer.
#ifndef STAGECOACH_COORDINATOR_LOOP_SILENT_STAGES_TESTING_H_
#define STAGECOACH_COORDINATOR_LOOP_SILENT_STAGES_TESTING_H_

#include <functional>
#include <string>
#include <vector>

#include "coordinator/loop/job_manager.h"

namespace stagecoach {

class SilentStages : public StageClient {
 public:
  void Load(const StagePeer&, const LoadCommand&, double,
            std::function<void(absl::StatusOr<LoadResult>)>) override {}
  void Run(const StagePeer&, const RunCommand&, double,
           std::function<void(absl::StatusOr<StepReport>)>) override {}
  void WriteShard(const StagePeer&, const WriteShardCommand&, double,
                  std::function<void(absl::StatusOr<ShardInfo>)>) override {}
  void Profile(const StagePeer&, const ProfileCommand&, double,
               std::function<void(absl::StatusOr<std::vector<LayerProfile>>)>) override {}
  void FindSnapshots(const StagePeer&, const std::string&, const std::string&, double,
                     std::function<void(absl::StatusOr<std::vector<HeldShard>>)>) override {}
  void Abort(const StagePeer&, const Fence&, const std::string&) override {}
  void Release(const StagePeer&, const Fence&) override {}
  void Reconnect(const StagePeer&) override {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_SILENT_STAGES_TESTING_H_
