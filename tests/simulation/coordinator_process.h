// CoordinatorProcess: a coordinator's process on virtual time: the real job loop and journal, what
// its threads do as events, and the calls to stages over simulated channels, as GrpcStageClient
// makes them.
// Ownership: owned by the world while the process lives; borrows everything in Parts. Its end is
//            that of a killed process: nothing more is written, and the journal's files stay as
//            they were.
// Threads:   one. Everything happens in events of the process, so none comes after its end.
// Units:     virtual seconds.
// Errors:    Start: as JobManager::Start; the process then ends.
#ifndef STAGECOACH_TESTS_SIMULATION_COORDINATOR_PROCESS_H_
#define STAGECOACH_TESTS_SIMULATION_COORDINATOR_PROCESS_H_

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/progress.h"
#include "checkpoint/store/store.h"
#include "coordinator/loop/job_loop.h"
#include "coordinator/testing/memory_disk.h"
#include "tests/simulation/host/simulated_channel.h"
#include "tests/simulation/stage_server_process.h"
#include "tests/simulation/store/coordinator_store.h"

namespace stagecoach {

class CoordinatorProcess final : public FleetServer, private StageClient {
 public:
  struct Parts {
    SimulatedNetwork* network = nullptr;
    EventTrace* trace = nullptr;
    const Clock* clock = nullptr;
    FileSystem* files = nullptr;  // of its host
    std::shared_ptr<CoordinatorStore> store;
    std::string state_folder;
    MemoryDisk* disk = nullptr;
    const JobCodec* codec = nullptr;
    int host = 0;
    uint64_t process = 0;
    bool holds_jobs = false;
    std::function<int(const std::string& address)> host_of;
    std::function<StageServerProcess*(int host)> stage_at;  // called in events of its process only
    std::function<void(const std::string& job)> on_end;     // the job's end is on disk
    std::function<bool()> store_away;                       // no call of the store would succeed
    std::function<void(CoordinatorProcess* one)> at_work;   // its file work begins; null: ends
    // How slow its disks are; 1: good ones.
    const double* journal_slowness = nullptr;
    const double* folder_slowness = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<CoordinatorProcess>> Start(const Parts& parts);
  ~CoordinatorProcess() override;

  // On the loop's thread, as a call of a client comes in.
  void Ask(std::function<void(JobLoop&)> work);
  void Register(const StageRegistration& registration, Done done) override;
  void Renew(const StageHeartbeat& heartbeat, Done done) override;
  const JobLoop& loop() const { return *loop_; }
  uint64_t process() const { return parts_.process; }
  // SIGTERM: as JobManager::Drain and Shutdown. `ended` is called once the process is to end.
  void Drain(bool save, std::function<void()> ended);
  // The process has died within its file work: to be called while its calls of the file system fail
  // from some on.
  void LeaveHalfDone();
  bool HasFileWork() const;
  // A piece of the file work at hand, now: the work of another process is at a call of its own.
  void DoSomeFileWork();
  CoordinatorStore& store() { return *parts_.store; }

 private:
  // One that does file work or plans, one piece after the other.
  struct Worker {
    std::deque<JobLoop::Work> waiting;
    bool works = false;
    double waited_seconds = 0;  // for the store, with the first piece
    ProgressCounter progress;
  };

  using FolderGrant = std::pair<std::string, std::string>;  // as commands carry it
  using FolderGrants = std::vector<FolderGrant>;

  explicit CoordinatorProcess(const Parts& parts) : parts_(parts) {}
  void Post(JobLoop::Work work);
  void WakeLoop(double seconds);
  void LoopTurn();
  void Add(Worker& worker, double seconds, JobLoop::Work work);
  void GoOn(Worker& worker, double seconds);
  void DoFirst(Worker& worker);
  double EffectSeconds();
  Moment Now() const;

  template <typename Result, typename Request, typename Command>
  void Start(const std::string& address, const Command& command,
             std::function<void(absl::StatusOr<Result>)> done, const FolderGrants& grants = {});
  FolderGrant GrantFor(const std::string& folder, ObjectGrants::Use use) const;
  void Tell(const std::string& address, std::function<void(StageServerProcess&)> work);
  std::shared_ptr<SimulatedChannel> ChannelTo(const std::string& address);

  void Load(const StagePeer& peer, const LoadCommand& command, double,
            std::function<void(absl::StatusOr<LoadResult>)> done) override;
  void Run(const StagePeer& peer, const RunCommand& command, double,
           std::function<void(absl::StatusOr<StepReport>)> done) override;
  void WriteShard(const StagePeer& peer, const WriteShardCommand& command, double,
                  std::function<void(absl::StatusOr<ShardInfo>)> done) override;
  void Profile(const StagePeer& peer, const ProfileCommand& command, double,
               std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) override;
  void FindSnapshots(const StagePeer& peer, const std::string& job, const std::string& key,
                     double deadline_seconds,
                     std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) override;
  void Abort(const StagePeer& peer, const Fence& fence, const std::string& reason) override;
  void Release(const StagePeer& peer, const Fence& fence) override;
  void Reconnect(const StagePeer& peer) override;

  const Parts parts_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<JobLoop> loop_;
  std::vector<JobLoop::Work> posts_;
  bool draining_ = false, closed_ = false;
  bool turn_asked_ = false;
  int64_t turn_nanos_ = 0;
  uint64_t turn_ = 0;       // the one that counts
  int64_t busy_nanos_ = 0;  // the loop's thread waits for the journal until then
  std::array<Worker, 2> effects_;
  Worker planner_, checks_;
  std::map<std::string, std::shared_ptr<SimulatedChannel>> channels_;  // by address
  std::vector<std::shared_ptr<SimulatedChannel>> retired_;             // perhaps with calls
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_COORDINATOR_PROCESS_H_
