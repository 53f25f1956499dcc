// Conversion of a plan (plan/plan.h) to proto/stagecoach/v1/job.proto: the coordinator answers with
// it, the client prints one that it made itself.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_PLAN_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_PLAN_H_

#include <cstddef>
#include <limits>

#include "plan/plan.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

v1::RateSource ToProto(RateSource source);

// A schedule as text grows with K * M, and clients of gRPC take 4 MiB by default.
inline constexpr size_t kMostScheduleBytes = size_t{2} << 20;
// Leaves the schedule out if its text is longer.
v1::PlanJobResponse ToProto(const Plan& plan,
                            size_t most_schedule_bytes = std::numeric_limits<size_t>::max());

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_PLAN_H_
