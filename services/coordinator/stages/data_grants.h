// DataGrants: which grants for data sets a command to a stage carries. A load has one for each set of
// its job; the runs behind it get them again in time, for a grant ends (ObjectGrants::kSeconds).
// Ownership: borrows grants and clock.
// Threads:   thread-safe.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STAGES_DATA_GRANTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_STAGES_DATA_GRANTS_H_

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/threads/clock.h"
#include "coordinator/fleet/fleet.h"
#include "plan/job/job_spec.h"
#include "services/coordinator/store/object_grants.h"
#include "stagecoach/v1/stage.pb.h"

namespace stagecoach {

class DataGrants {
 public:
  // The first run that comes so long after the last grants has new ones.
  static constexpr double kPeriodSeconds = 3600;

  using Grants = google::protobuf::RepeatedPtrField<v1::DataGrant>;

  // grants: null: commands have none. unproven: the store compares no digests of parts.
  explicit DataGrants(const ObjectGrants* grants, bool unproven = false,
                      const Clock* clock = SystemClock::Get())
      : grants_(grants), unproven_(unproven), clock_(clock) {}

  void ForLoad(const StagePeer& stage, const std::string& job, const JobSpec& spec,
               Grants* granted);
  void ForRun(const StagePeer& stage, const std::string& job, Grants* granted);
  void Forget(const StagePeer& stage);  // it has no cell any more

 private:
  struct Cell {
    std::string job;
    std::vector<std::string> sets;
    double granted_seconds = 0;  // monotonic
  };
  void Grant(const Cell& cell, Grants* granted) const;

  const ObjectGrants* const grants_;
  const bool unproven_;
  const Clock* const clock_;
  std::mutex mutex_;
  std::map<StagePeer, Cell> cells_;  // a stage has one cell
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STAGES_DATA_GRANTS_H_
