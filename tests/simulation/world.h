// World: a coordinator, stages, users and all that lies between them, under one seed, on one thread
// and one virtual clock. Real are the job loop, the journal (SQLite, on a disk in memory), the
// checkpoint store with its clients, the stages' engines with their numbers, the links' frames and credits, and the
// conversion and checksum of messages that are damaged. Played are threads, TCP, gRPC's channels
// and streams, disks, clocks and users. docs/reliability.md, "The simulator", has the whole list.
// Ownership: owns everything. One at a time in a process (MemoryDisk).
// Threads:   one.
// Units:     virtual seconds.
#ifndef STAGECOACH_TESTS_SIMULATION_WORLD_H_
#define STAGECOACH_TESTS_SIMULATION_WORLD_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/testing/fault_file_system.h"
#include "coordinator/loop/list_codec_testing.h"
#include "coordinator/testing/memory_disk.h"
#include "tests/simulation/coordinator_process.h"
#include "tests/simulation/host/event_trace.h"
#include "tests/simulation/host/host_files.h"
#include "tests/simulation/host/simulated_network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulated_user.h"
#include "tests/simulation/stage_server_process.h"
#include "tests/simulation/store/bucket_transfer.h"
#include "tests/simulation/store/coordinator_store.h"
#include "tests/simulation/store/store_stub.h"

namespace stagecoach {

// A fault that somebody could make in the code: what does not find it is blind.
enum class PlantedFault {
  kNone,
  kWrongUpdate,  // a stage applies another learning rate once, and reports the one that it was told
  kForgetfulDisk,   // the journal's disk answers a sync before anything is on it
  kForgetfulStore,  // the coordinator's store answers that an object is complete, and synced nothing
};

// What became of a job.
struct JobEnding {
  ScenarioJob job;
  bool accepted = false, refused = false, ended = false, cancelled = false;
  bool can_be_read = true;  // a coordinator was there in the end
  std::string complaint;    // something that must not be, seen on the way
  JobPhase phase = JobPhase::kSubmitted;
  std::string message;
  std::vector<JobRecord> records;  // all, as the journal has them in the end
  std::vector<JobRecord> watched;  // as a user saw them come
  // By step, digests of a checkpoint's tensors by name, or why it cannot be loaded.
  std::map<uint64_t, std::string> checkpoints, broken;
  double ended_seconds = 0;
};

struct WorldEnding {
  std::vector<JobEnding> jobs;
  std::vector<std::pair<double, Fault>> struck;  // faults that met something, with when
  bool livelock = false;                         // events without end
  bool old_journal = false;                      // the coordinator began with a copy from before
  int loads_from_memory = 0;                     // of stages, that worked
  int twins = 0, interleaved = 0;  // coordinators cut off; their file work amid another's
  double seconds = 0;
  uint64_t events = 0, hash = 0;
};

class World {
 public:
  struct Options {
    bool shown = false;  // tell what happens, on stderr
    PlantedFault planted = PlantedFault::kNone;
  };
  World(const Scenario& scenario, const Options& options);
  ~World();

  // Until all users have seen the end of their jobs, or the time is up.
  WorldEnding Run(double limit_seconds);

 private:
  struct Host {
    std::string address;
    std::unique_ptr<HostClock> clock;
    std::unique_ptr<StoreClock> store_clock;
    std::unique_ptr<HostFiles> files;
    std::unique_ptr<CallFaults> calls;  // of the store
    std::unique_ptr<BucketTransfer> transfer;
    std::unique_ptr<RemoteStoreFiles> store;  // of the stage's process; null: a shared folder
    std::unique_ptr<StageServerProcess> stage;
    double slowness = 1;
  };
  static constexpr int kCoordinatorHost = 0;

  int hosts() const { return static_cast<int>(hosts_.size()); }
  void StartProcess(int host);
  void EndProcess(int host, bool power_cut);
  void LeaveHalfDone(int host);
  void MakeHost(int host);
  std::unique_ptr<RemoteStoreFiles> StageStore(int host);
  std::shared_ptr<CoordinatorStore> StoreOf(int host, BucketTransfer* transfer, FileSystem* files);
  bool StoreAway(int host);
  void Interleave();
  void EndTwin();
  void StartStage(int host);
  void StartCoordinator();
  void StartAt(double when, int host);
  void KeepJournal(const Fault& fault);
  std::function<void(StageRequest*)> PlantedAt(int host);

  void Strike(const Fault& fault);
  void Heal(const Fault& fault);
  void ForPaths(const Fault& fault, void (World::*what)(int from, int to));
  void ClosePath(int from, int to);
  void OpenPath(int from, int to);
  void DrainCoordinator();
  void FillFolder(const Fault& fault);
  void FailFolder(double share, absl::StatusCode code);
  void FailHostFolder(Host& host, double share, absl::StatusCode code);
  void StartTwin(const Fault& fault);
  void WakeTwin(double since);
  void Blackout(const Fault& fault);
  void BeginOldJournal(const Fault& fault);
  void Rot();
  void RotBucket();

  bool AllEnded() const;
  JobEnding EndingOf(const SimulatedUser& user);
  void AddCheckpoints(JobEnding* ending);

  const Scenario scenario_;
  const Options options_;
  VirtualTime time_;
  SeededRandom random_;
  EventTrace trace_;
  SimulatedNetwork network_;
  MemoryDisk disk_;
  FaultFileSystem storage_;
  FakeS3 bucket_{nullptr, FakeS3::Sockets::kNone};
  bool bucket_full_ = false;
  ListCodec codec_;
  std::vector<Host> hosts_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::vector<std::unique_ptr<SimulatedUser>> users_;
  std::map<std::pair<int, int>, int> closed_;  // how many faults keep a path closed
  struct OldJournal {
    MemoryDisk::Copy files;
    std::string folder;
  };
  std::map<double, OldJournal> old_journals_;  // by when they will be put back
  std::string state_folder_ = "/state";
  std::unique_ptr<CoordinatorProcess> twin_;  // the one that was cut off
  CoordinatorProcess* at_work_ = nullptr;     // whose file work is under way
  bool interleaves_ = false;
  int twins_ = 0, interleaved_ = 0;
  double journal_slowness_ = 1, folder_slowness_ = 1;
  bool folder_fails_ = false;
  bool planted_ = false, old_journal_ = false;
  int loads_from_memory_ = 0;
  std::map<std::string, double> ended_seconds_;  // by job
  std::vector<std::pair<double, Fault>> struck_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_WORLD_H_
