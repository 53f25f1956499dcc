// JobSchedule: the schedule that a job asks for, before it is fitted to a network and its cut
// (FitToNetwork, plan/plan.h).
// Errors: INVALID_ARGUMENT of a user's own text; see own_schedule.h.
#ifndef STAGECOACH_PLAN_SCHEDULES_JOB_SCHEDULE_H_
#define STAGECOACH_PLAN_SCHEDULES_JOB_SCHEDULE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

// Of a training step. The spec names a known kind. layers: of the network.
absl::StatusOr<ScheduleOptions> ScheduleOptionsOf(const JobSpec& spec, int64_t stages,
                                                  int64_t layers);

// A user's own text as far as it can be checked before the cut is known: an order wholly, a
// complete text but for its instructions. Also that nothing in the job contradicts it. OK of other
// kinds.
absl::Status ValidateOwnSchedule(const JobSpec& spec, int64_t layers);

// All cells of so many stages. Of a user's own text those that it names; 0 if it is not valid.
int64_t CellsOfJob(const JobSpec& spec, int64_t stages);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_JOB_SCHEDULE_H_
