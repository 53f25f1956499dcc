// Activity: what a live job does now. A phase says how far the job is, the activity says which
// operation is at hand.
#ifndef STAGECOACH_COORDINATOR_JOB_STATE_ACTIVITY_H_
#define STAGECOACH_COORDINATOR_JOB_STATE_ACTIVITY_H_

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace stagecoach {

enum class Activity : uint8_t {
  kFindCheckpoint,
  kWaitStages,
  kFindSnapshots,  // what the stages have in memory
  kProfile,
  kPlan,
  kProbeFolder,  // a question is written into the checkpoint folder
  kLoad,         // which the stages answer when they load
  kCheckFolder,  // their answers are read
  kTrain,
  kFlush,  // the last decision, applied without new work
  kEvaluate,
  kWrite,
  kBeginCheckpoint,
  kWriteShards,
  kCommit,
  kExport,
  kBackOff,  // after several recoveries in a row without a new step
  kEnded,
  kHeld
};

// Whose progress moves the deadline of an operation.
enum class WaitsFor : uint8_t { kNobody, kFirstStage, kStages, kFiles };

struct ActivityTraits {
  const char* name;
  WaitsFor waits_for;
  bool ends_first;  // a coordinator that drains waits for its end
};

inline constexpr ActivityTraits kActivities[] = {
    {"find_checkpoint", WaitsFor::kFiles, false}, {"wait_stages", WaitsFor::kNobody, false},
    {"find_snapshots", WaitsFor::kNobody, false}, {"profile", WaitsFor::kFirstStage, false},
    {"plan", WaitsFor::kNobody, false},           {"probe_folder", WaitsFor::kFiles, false},
    {"load", WaitsFor::kStages, false},           {"check_folder", WaitsFor::kFiles, false},
    {"train", WaitsFor::kStages, true},           {"flush", WaitsFor::kStages, true},
    {"evaluate", WaitsFor::kStages, true},        {"write", WaitsFor::kStages, true},
    {"begin_checkpoint", WaitsFor::kFiles, true}, {"write_shards", WaitsFor::kStages, true},
    {"commit", WaitsFor::kFiles, true},           {"export", WaitsFor::kFiles, true},
    {"back_off", WaitsFor::kNobody, false},       {"ended", WaitsFor::kNobody, false},
    {"held", WaitsFor::kNobody, false},
};
static_assert(std::size(kActivities) == static_cast<size_t>(Activity::kHeld) + 1);

constexpr const ActivityTraits& TraitsOf(Activity activity) {
  return kActivities[static_cast<size_t>(activity)];
}
constexpr const char* ActivityName(Activity activity) { return TraitsOf(activity).name; }

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_STATE_ACTIVITY_H_
