// SimulatedCluster: a coordinator and its stages in one thread on virtual time, for tests. The job
// loop, journal and checkpoint store are the real ones (the store on a file system in memory);
// stages are played: they keep one number per layer, obey fences like real ones, and finish a step
// only when all neighbours run it. So whole jobs run in milliseconds, a fault can be put at every
// single event, and a step may take hours. With real engines: tests/simulation.
// Units: virtual seconds.
#ifndef STAGECOACH_COORDINATOR_TESTING_SIMULATED_CLUSTER_H_
#define STAGECOACH_COORDINATOR_TESTING_SIMULATED_CLUSTER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/manual_clock.h"
#include "checkpoint/testing/fault_file_system.h"
#include "coordinator/loop/job_loop.h"
#include "coordinator/loop/list_codec_testing.h"
#include "coordinator/testing/memory_disk.h"
#include "network/network_spec.h"

namespace stagecoach {

// The text of a line by a played last stage with weights of this sum of squares; a byte is a token.
std::string SimulatedText(int64_t line, double weights);

// 7 layers, 7 steps, a checkpoint and an evaluation every 3 steps.
JobSpec SmallJob(int stages);

// The part of a stage that outlives its process.
struct StageMachine {
  std::string name, address;
  std::string fingerprint = "avx2";
  std::string data_sha256 = "data", weights_sha256 = "weights";
  FaultFileSystem* own_files = nullptr;  // if its checkpoint folder is not the shared one
  std::optional<StageDeath> last_death;  // told when it registers
  int heartbeat_epoch = 0;
};

struct SimulatedStage : StageMachine {
  std::string incarnation;
  bool old_version = false;  // knows nothing of probe_folder
  bool alive = true;         // false: killed; calls answer UNAVAILABLE
  bool stopped = false;      // SIGSTOP: neither heartbeats nor answers
  bool hung = false;         // heartbeats go on, steps never end
  bool load_hangs = false;   // loads never end
  std::string loading;       // what it says that its load is at; empty: it does not load
  Fence loading_fence;       // of the newest load that reached it
  uint64_t progress = 0, shard_progress = 0;
  double busy_until = 0;    // it computes, reads or writes, and shows progress
  double writes_until = 0;  // likewise its shard, beside other commands

  // The loaded state.
  bool loaded = false, aborted = false;
  LoadCommand command;
  std::map<int, float> layers;  // a weight each
  // Layers as they were copied for a checkpoint, under this fence.
  std::optional<std::pair<Fence, std::map<int, float>>> copied;
  uint64_t next_step = 0;
  std::optional<uint64_t> undecided;
  std::optional<uint64_t> writes;  // mini-batch of lines that is not over
  int64_t written = 0;             // bytes of each of its texts
};

// Writes the shard of a stage with these layers; all numbers of a layer are the same.
absl::StatusOr<ShardInfo> WriteLayers(FileSystem& files, const LoadCommand& loaded,
                                      const std::string& folder,
                                      const std::map<int, float>& layers);

class SimulatedCluster : private StageClient {
 public:
  static constexpr double kLatency = 0.001, kStepSeconds = 0.1;

  explicit SimulatedCluster(int stages, JobManagerOptions options = {});
  ~SimulatedCluster() override;

  void StartCoordinator();
  void CrashCoordinator();                                      // nothing more is written
  void set_hold_jobs(bool hold) { options_.hold_jobs = hold; }  // of the next start
  void set_state_folder(const std::string& folder) { state_folder_ = folder; }  // likewise
  void AddStage(int number);
  void KillStage(int number);
  void RestartStage(int number);  // a new process under the old name
  // Kills the stage. Its next process reports that this signal ended it, at this instruction of its
  // step.
  void CrashStage(int number, const std::string& signal, const std::string& instruction);
  void StopStage(int number) { stage(number).stopped = true; }
  void ContinueStage(int number);
  SimulatedStage& stage(int number) { return *stages_.at(number); }
  int stages() const { return static_cast<int>(stages_.size()); }

  absl::StatusOr<JobView> Submit(const std::string& id, const JobSpec& spec,
                                 const JobCaller& caller = {});
  absl::StatusOr<Plan> PlanJob(const JobSpec& spec);
  JobView View(const std::string& id);
  // The newest step of the job, and whether it ended, as logged.
  uint64_t step_of(const std::string& id) { return steps_[id]; }
  std::vector<std::string> logged_details;
  bool logged_end(const std::string& id) const { return ends_.contains(id); }
  absl::Status Cancel(const std::string& id);
  const std::vector<JobRecord>& Records(const std::string& id) const { return records_.at(id); }

  // One thing happens; false if nothing ever will.
  bool Step();
  // Until the condition holds or the virtual time has passed; true if it holds.
  bool RunUntil(const std::function<bool()>& condition, double seconds = 1000);
  bool RunToEnd(const std::string& id, double seconds = 1000);
  // Call inside the loop, as a slow disk does. The others go on, and the loop hears them
  // afterwards.
  void KeepLoopBusy(double seconds);
  int events() const { return events_; }
  double now() const { return clock_.MonotonicSeconds(); }
  double loop_seconds() const { return loop_seconds_; }  // real ones that the job loop worked

  JobLoop& loop() { return *loop_; }
  FaultFileSystem& files() { return files_; }
  MemoryDisk& disk() { return *disk_; }  // of the journal; of all clusters that live
  std::string journal_path() const { return folder_ + "/journal.sqlite"; }
  CheckpointStore& store() { return store_; }

  std::set<uint64_t> nonfinite_steps;  // whose loss is not a number
  absl::Status profile_error;
  absl::Status folder_error;              // of the state folder: it belongs to somebody else
  std::vector<std::string> unknown_jobs;  // that the last start told of
  std::vector<absl::Status> folder_lost;  // what the process was told of it
  // Times of the planner's work and of the checks for clients, which run one after the other.
  double plan_seconds = 0, check_seconds = 0;
  std::function<absl::Status(int stage, const RunCommand&)> run_fault;
  // How long stages work for an answer.
  double step_seconds = kStepSeconds, load_seconds = 0, shard_seconds = 0, profile_seconds = 0;
  // How long the coordinator's file work takes, and whether it shows progress meanwhile.
  double effect_seconds = 0;
  bool storage_stuck = false;
  // optimizer_steps of applied decisions, by job and step: one number a step, however often it ran.
  std::map<std::string, std::map<uint64_t, std::set<uint64_t>>> optimizer_steps;
  std::vector<std::string> violations;  // of the step protocol, by the coordinator
  std::vector<std::string> aborts;      // reasons, as stages heard them
  bool room_for_copies = true;          // of shards, on all stages
  bool shards_stuck = false;            // those beside the steps are never written
  int shards_beside = 0;                // that were written while a step ran
  int profiles = 0;
  std::map<std::string, int> reconnects;  // by address

 private:
  std::string state_folder_ = "/state";
  struct Pass {  // one Run on all stages
    std::map<int, std::function<void(absl::StatusOr<StepReport>)>> waiting;
    bool scheduled = false;
  };

  void Load(const StagePeer& peer, const LoadCommand& command, double deadline_seconds,
            std::function<void(absl::StatusOr<LoadResult>)> done) override;
  void Run(const StagePeer& peer, const RunCommand& command, double deadline_seconds,
           std::function<void(absl::StatusOr<StepReport>)> done) override;
  void WriteShard(const StagePeer& peer, const WriteShardCommand& command, double deadline_seconds,
                  std::function<void(absl::StatusOr<ShardInfo>)> done) override;
  void Profile(const StagePeer& peer, const ProfileCommand& command, double deadline_seconds,
               std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) override;
  void FindSnapshots(const StagePeer& peer, const std::string& job, const std::string& key,
                     double deadline_seconds,
                     std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) override;
  void Abort(const StagePeer& peer, const Fence& fence, const std::string& reason) override;
  void Release(const StagePeer& peer, const Fence& fence) override;
  void Reconnect(const StagePeer& peer) override { ++reconnects[peer.address]; }

  Moment Now() const;
  void AdvanceTo(double seconds);
  void RunFirst();  // of later_
  void After(double seconds, std::function<void()> work);
  std::function<void(JobLoop::Work)> Worker(const double* seconds);  // one thing after the other
  void KeepBusy(SimulatedStage& stage, double seconds, std::function<void()> done);
  bool ShowsProgress(const SimulatedStage& stage) const;
  void Deliver(const StagePeer& peer, std::function<void(absl::Status)> failed,
               std::function<void(SimulatedStage&)> work);
  void Register(int number);
  void Heartbeat(int number, int epoch);
  absl::StatusOr<LoadResult> DoLoad(SimulatedStage& stage, const LoadCommand& command);
  absl::Status ReadLayers(SimulatedStage& stage);
  absl::Status CheckRun(SimulatedStage& stage, const RunCommand& command);
  void StartRun(SimulatedStage& stage, const RunCommand& command,
                std::function<void(absl::StatusOr<StepReport>)> done);
  void FinishPass(const std::string& key, const RunCommand& command);
  void BreakPasses(const std::string& job, const absl::Status& reason);
  StepReport ReportOf(const SimulatedStage& stage, const RunCommand& command, double loss);
  void Write(SimulatedStage& stage, const RunCommand& command, double weights, StepReport* report);
  absl::StatusOr<ShardInfo> DoWriteShard(SimulatedStage& stage, const WriteShardCommand& command);
  void Watch(const std::string& id);
  void InLoop(const std::function<void()>& work);  // counts its time

  JobManagerOptions options_;
  const std::shared_ptr<MemoryDisk> disk_;
  const std::string folder_;
  ManualClock clock_;
  FaultFileSystem files_;
  CheckpointStore store_;
  ListCodec codec_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<JobLoop> loop_;
  uint64_t epoch_ = 0;  // number of the coordinator: answers to an earlier one are dropped
  std::map<int, std::unique_ptr<SimulatedStage>> stages_;
  std::map<std::string, Pass> passes_;
  std::deque<std::function<void()>> posts_, effects_;
  std::multimap<double, std::function<void()>> later_;
  std::map<std::string, std::vector<JobRecord>> records_;
  uint64_t next_watch_ = 1;
  int incarnations_ = 0;
  int events_ = 0;
  double loop_seconds_ = 0;
  std::map<std::string, uint64_t> steps_;  // by job
  std::set<std::string> ends_;             // jobs
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_TESTING_SIMULATED_CLUSTER_H_
