// Fleet: the stage servers known to the coordinator and their leases. Logic only: time comes in as
// a value, nothing waits and nothing is sent.
//   unknown -Register-> ready -Hold-> busy -Hold(none)-> ready
//   ready, busy -heartbeat says draining-> draining: about to end, takes no new job
//   any of them -no renewal-> lost -Register-> ready
// A stage is the pair (name, incarnation). While the process that holds a name lives, only its own
// successor may take the name. A successor has the same identity and was never replaced itself. The
// old process is then lost to its job. Anybody else waits until the lease has ended.
// If a call to a stage breaks, the stage is doubted until its next heartbeat. A dead process sends
// none. A stage that only lost its neighbour is back within a third of the lease.
// Ownership: plain values.
// Threads:   thread-compatible (the job loop's).
// Units:     seconds of one monotonic clock; wall time only for show.
// Errors:    Renew: NOT_FOUND, the stage must register again. Register: INVALID_ARGUMENT;
//            RESOURCE_EXHAUSTED beyond kMaxStages that live, or kMostOfCertificate of one;
//            ALREADY_EXISTS naming both addresses while another process holds the name.
#ifndef STAGECOACH_COORDINATOR_FLEET_FLEET_H_
#define STAGECOACH_COORDINATOR_FLEET_FLEET_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "coordinator/fleet/stage_totals.h"
#include "devices/card/card_profile.h"
#include "devices/host/host_profile.h"
#include "plan/stage_kernels.h"

namespace stagecoach {

// Place and identity of a stage. Nobody talks to a process at the address, unless it shows a
// certificate that may be this stage's.
struct StagePeer {
  std::string name, address;
  friend auto operator<=>(const StagePeer&, const StagePeer&) = default;
};

struct StageRegistration {
  std::string name;         // unique
  std::string incarnation;  // random per process start
  std::string address;      // gRPC address that coordinator and neighbours dial
  std::string device;
  std::string version;
  std::string fingerprint;
  int64_t memory_limit_bytes = 0;
  std::string identity;  // a process and its successor have the same; empty: none
  // its card, for forecasts; nullopt: it is a processor
  std::optional<CardProfile> card = std::nullopt;
  HostProfile host = {};  // its processor, for forecasts
  // Operations that its device has no kernel for, for plans.
  std::vector<std::string> without_kernels = {};
  // Name in the certificate of its registration, as the server read it. Empty: no certificate, or
  // one for any name.
  std::string certificate = {};
  operator StagePeer() const { return {name, address}; }
  friend bool operator==(const StageRegistration&, const StageRegistration&) = default;
};

inline StageKernels KernelsOf(const StageRegistration& stage) {
  return {stage.name, stage.device, stage.without_kernels};
}

// One process of a stage. The incarnation tells it from the next process of this name.
struct StageProcess {
  std::string name, incarnation;
  friend bool operator==(const StageProcess&, const StageProcess&) = default;
};

struct LeaseGrant {
  uint64_t term = 0;
  double lease_seconds = 0;  // renew at a third of this
  // Changes when any stage of this stage's job reports progress; 0: the stage has no job.
  uint64_t job_progress = 0;
};

// Report of a stage with each renewal. It tells a slow stage from a stuck one, and is for show.
struct StageHeartbeat {
  std::string name, incarnation;
  std::string state;  // as GetStatusResponse has it, or kDrainingState
  Fence fence;
  uint64_t progress = 0;    // a new number means progress
  std::string waiting_for;  // while it loads: what it is at
  StageTotals totals;
  uint64_t newest_term = 0;     // newest term of all commands so far, by any coordinator
  uint64_t shard_progress = 0;  // of a shard written beside the steps: a new number means progress
};

// Signs of a stage at work, from its heartbeats.
struct StageSigns {
  double moved_seconds = 0;  // last heartbeat with progress; 0: none yet
  double wrote_seconds = 0;  // the same of a shard that is written beside the steps
  std::string waiting_for;   // empty: unknown
  bool loads = false;        // a cell of its job; waiting_for is then what it is at
};

inline constexpr char kDrainingState[] = "draining", kLoadingState[] = "loading";

enum class StageState : uint8_t { kReady, kBusy, kDraining, kLost };
const char* StageStateName(StageState state);  // "ready", "busy", "draining", "lost"

struct StageView {
  StageRegistration registration;
  StageState state = StageState::kReady;
  std::string job;  // the one it works for
  double last_heartbeat_unix_seconds = 0;
  std::string waiting_for;
  StageTotals totals;  // of the last heartbeat
};

// A moment on two clocks: monotonic for decisions, wall time for show.
struct Moment {
  double seconds = 0;       // monotonic
  double unix_seconds = 0;  // wall
};

// A stage that a job loses: a lease ended, or a new process took the name.
struct LostStage {
  std::string name, incarnation;
  std::string job;  // empty: it worked for none
  std::string reason;
  friend bool operator==(const LostStage&, const LostStage&) = default;
};

class Fleet {
 public:
  static constexpr int kMaxStages = 10000;
  // Limit per certificate: one certificate is good for 65,000 names, and could fill the list.
  static constexpr int kMostOfCertificate = 1024;
  // A lost stage is shown for this time, unless a new stage needs its place.
  static constexpr double kForgetLostSeconds = 3600;

  explicit Fleet(double lease_seconds);

  // `lost` gets the stage that this one replaces, if there was one.
  absl::Status Register(const StageRegistration& registration, Moment now,
                        std::vector<LostStage>* lost);
  // True: the stage was doubted and is usable again. `now`: arrival of the heartbeat, perhaps
  // earlier than that of the newest.
  absl::StatusOr<bool> Renew(const StageHeartbeat& heartbeat, Moment now);
  // `heard_seconds`: every heartbeat that came before this moment was given to Renew.
  std::vector<LostStage> Expire(double heard_seconds);
  // No lease ends before this time; infinity if no lease runs.
  double NextExpirySeconds() const { return next_expiry_seconds_; }

  // The named stages work for `job`, and no others do. True: this changed something.
  bool Hold(const std::string& job, const std::vector<std::string>& names);
  // Makes the stage unusable until its next heartbeat.
  void Doubt(const std::string& name, const std::string& incarnation);

  // Notes whether the process sees the coordinator's folder of checkpoints, as a job found out. The
  // note is kept until the process ends.
  void NoteFolder(const StageProcess& process, bool sees);
  bool SeesFolder(const std::string& name) const;  // false: known not to see it

  // Stages that are alive, not doubted, not draining, and held by no job but `job`; by name.
  std::vector<StageRegistration> UsableBy(const std::string& job) const;
  std::vector<StageRegistration> HeldBy(const std::string& job) const;  // of those, by name
  std::string HolderOf(const std::string& name) const;                  // its job; empty: none
  int alive() const;
  int alive_with_folder() const;  // without those that are known not to see it
  StageSigns SignsOf(const std::string& name) const;
  // LeaseGrant.job_progress for this stage.
  uint64_t JobProgressFor(const std::string& name) const;
  std::vector<StageView> View() const;  // by name
  double lease_seconds() const { return lease_seconds_; }

 private:
  struct Entry {
    StageRegistration registration;
    std::vector<std::string> former;  // incarnations that it replaced, newest last
    bool lost = false;
    bool doubted = false;
    bool draining = false;
    bool sees_folder = true;
    std::string job;
    double renewed_seconds = 0, renewed_unix_seconds = 0;
    uint64_t progress = 0, shard_progress = 0;
    StageSigns signs;
    StageTotals totals;
  };
  static constexpr size_t kFormer = 8;

  absl::Status CheckHolder(const Entry& holder, const StageRegistration& registration) const;
  // Makes an entry for a new name, or for one that comes by another certificate than before, if
  // lost ones can give way.
  absl::Status MakePlace(const StageRegistration& registration, bool is_new);
  bool ForgetOldestLost(
      const std::string* certificate);  // of this one, or null: of all; false: all live

  const double lease_seconds_;
  std::map<std::string, Entry> entries_;       // by name
  std::map<std::string, uint64_t> job_moves_;  // heartbeats with progress, by job that has stages
  // Bounds, so that hardly any heartbeat has to look at all stages. No lease ends before the first.
  // No lost stage is forgotten before the second.
  double next_expiry_seconds_ = std::numeric_limits<double>::infinity();
  double next_forgetting_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_FLEET_FLEET_H_
