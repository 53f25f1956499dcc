// LocalCluster: a coordinator and K stage servers as child processes on free loopback ports. The
// coordinator starts first and holds the unfinished jobs that it finds. The caller looks at them,
// decides which one goes on, and then starts the stages.
// Layout of the state folder: processes.json (what runs), logs/<name>.log, ports/, and the
//            coordinator's journal, checkpoints and exported weights.
// Ownership: owns the processes; they are gone when the object is.
// Threads:   the owner's; see Supervisor for on_failure and on_note.
// Errors:    FAILED_PRECONDITION: another local cluster has the folder, or a process does not run
//            (named, with its log). DEADLINE_EXCEEDED: the coordinator does not get ready.
#ifndef STAGECOACH_SERVICES_CLI_LOCAL_LOCAL_CLUSTER_H_
#define STAGECOACH_SERVICES_CLI_LOCAL_LOCAL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/local/supervisor.h"

namespace stagecoach {

struct LocalClusterOptions {
  std::string program_folder;                  // of stagecoach-coordinator and stagecoach-stage
  std::string state_folder;                    // exists
  std::string holder = "stagecoach local";     // the command, named to others who want the folder
  std::vector<std::string> devices = {"cpu"};  // of the stages in pipeline order, repeated
  int64_t memory_per_stage = 0;                // bytes of tensors; 0: no limit
  std::vector<std::string> shown_runs;         // folders; their jobs are copied, and nothing runs
  std::function<void(const absl::Status&)> on_failure;
  std::function<void(const std::string&)> on_note;
};

class LocalCluster {
 public:
  // Returns once the coordinator is bound.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options);

  const std::string& address() const { return address_; }            // gRPC of the coordinator
  const std::string& http_address() const { return http_address_; }  // its dashboard
  // Call it once; does not wait for the stages. data_roots: folders that they may read, and no
  // others.
  void StartStages(int stages, int threads_per_stage, const std::vector<std::string>& data_roots);
  // Lets the current job end its step and write a checkpoint, then ends the coordinator. False: it
  // was hurried.
  bool SaveAndEndCoordinator(const Supervisor::Hurry& hurry);
  void Stop(const Supervisor::Hurry& hurry = nullptr) { supervisor_->Stop(hurry); }

 private:
  // An exclusive lock on the state folder, released with the process at the latest. Its file names
  // the holder.
  class FolderLock {
   public:
    ~FolderLock();
    absl::Status Take(const std::string& path, const std::string& holder);

   private:
    int descriptor_ = -1;
    bool held_ = false;
  };

  explicit LocalCluster(LocalClusterOptions options) : options_(std::move(options)) {}

  const LocalClusterOptions options_;
  FolderLock lock_;
  std::unique_ptr<Supervisor> supervisor_;
  std::string address_, http_address_;
};

// Folder of the checkpoints of a state folder's coordinator.
std::string CheckpointFolder(const std::string& state_folder);

// Cores this process may use, divided among the stages that compute with them; at least 1.
int DefaultThreadsPerStage(int stages, const std::vector<std::string>& devices = {"cpu"});

// Device of stage-`stage`. Stages take their places in the pipeline by name, so stage-10 is before
// stage-2. The list is in the order of the pipeline.
std::string DeviceOfStage(int stage, int stages, const std::vector<std::string>& devices);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_LOCAL_LOCAL_CLUSTER_H_
