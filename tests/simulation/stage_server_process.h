// StageServerProcess: a stage server's process on virtual time: the real mailbox, engine, reference
// back end and links, moved on by turns that take virtual time, and its lease, which does what
// services/stage/lease.h does with a thread.
// Ownership: owned by the world while the process lives; borrows everything in Parts.
// Threads:   one. Everything happens in events of the process (SimulatedNetwork::Post), so none
//            comes after its end.
// Units:     virtual seconds.
#ifndef STAGECOACH_TESTS_SIMULATION_STAGE_SERVER_PROCESS_H_
#define STAGECOACH_TESTS_SIMULATION_STAGE_SERVER_PROCESS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/threads/progress.h"
#include "coordinator/fleet/fleet.h"
#include "services/common/store/remote_store_files.h"
#include "stage/files/data_roots.h"
#include "stage/runtime/stage_engine.h"
#include "stage/runtime/stage_mailbox.h"
#include "tests/simulation/host/event_trace.h"
#include "tests/simulation/host/simulated_channel.h"
#include "tests/simulation/host/simulated_links.h"
#include "tests/simulation/host/simulated_peers.h"

namespace stagecoach {

// What a stage asks of the coordinator's process. `done` is called by that process.
class FleetServer {
 public:
  using Done = std::function<void(absl::StatusOr<LeaseGrant>)>;
  virtual ~FleetServer() = default;
  virtual void Register(const StageRegistration& registration, Done done) = 0;
  virtual void Renew(const StageHeartbeat& heartbeat, Done done) = 0;
};

class StageServerProcess {
 public:
  struct Parts {
    SimulatedNetwork* network = nullptr;
    EventTrace* trace = nullptr;
    const Clock* clock = nullptr;
    FileSystem* files = nullptr;
    RemoteStoreFiles* store = nullptr;  // the same files, where the coordinator has the store
    std::function<bool()> store_away;   // no call of the store would succeed
    const double* store_slowness = nullptr;
    DataRoots* data_roots = nullptr;
    int host = 0, coordinator_host = 0;
    uint64_t process = 0;
    double pace = 1;  // Scenario's
    std::string name, address;
    std::function<int(const std::string& address)> host_of;
    std::function<std::string(int host)> name_of;  // of the stage there
    std::function<SimulatedLinks*(int host)> links_at;
    std::function<SnapshotStore*(int host)> snapshots_at;
    std::function<FleetServer*()> coordinator;  // called in events of its process only
    std::function<void(StageRequest*)> meddle;  // a planted fault; empty: none
    std::function<void()> loaded_from_memory;   // told of
    std::function<void()> drained;              // the process ends by itself
  };
  explicit StageServerProcess(const Parts& parts);
  ~StageServerProcess();

  void Ask(StageRequest request);  // as StageRuntime's functions do
  void Abort(const Fence& fence, const std::string& reason);
  void Admit(const std::string& folder, const std::string& grant) {
    if (parts_.store != nullptr) parts_.store->Admit(folder, grant);
  }
  void SetSlowness(double factor) { slowness_ = factor; }  // 1: as fast as the others
  void StartDraining();
  // The process has died within what it was at: to be called while its calls of the file system
  // fail from some on.
  void LeaveHalfDone();
  SimulatedLinks& links() { return links_; }
  SnapshotStore& snapshots() { return engine_->snapshots(); }

 private:
  StageRuntime::Options Options();
  double Cost(double least, double most);
  bool busy() const { return work_ != nullptr; }
  void Wake(double seconds);
  void Turn();
  void Take(StageRequest request);
  void GoOn(StageEngine::Going going);
  void Work(double seconds, std::function<void()> work, bool with_store = false);
  void EndWork(bool with_store, double waited_seconds);
  void WriteBeside(double seconds, double waited_seconds, std::function<void()> work);
  bool WaitsForStore(double waited_seconds);
  double StoreCost();
  void LookWhetherDrained();

  void LeaseTurn();
  void LeaseAfter(double seconds);
  void OnRegistered(const absl::StatusOr<LeaseGrant>& grant);
  void OnRenewed(const absl::StatusOr<LeaseGrant>& grant);

  const Parts parts_;
  const std::unique_ptr<Backend> backend_;
  ProgressCounter progress_;
  StageMailbox mailbox_;
  SimulatedLinks links_;
  SimulatedPeers peers_;
  std::unique_ptr<StageEngine> engine_;
  double slowness_ = 1;

  std::function<void()> work_;  // at hand: a Load, a shard or a profile; empty: none
  std::optional<RunRequest> running_;
  bool turn_asked_ = false;
  int64_t turn_nanos_ = 0;
  uint64_t turn_ = 0;  // the one that counts

  std::shared_ptr<SimulatedChannel> channel_;
  bool registered_ = false;
  double lease_seconds_ = 1.5, backoff_seconds_ = 0.1;
  int unavailable_ = 0;  // answers since the last good one
  bool draining_ = false;
  double rested_seconds_ = 0, drain_until_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_STAGE_SERVER_PROCESS_H_
