// Conversion of a plan (plan/plan.h) to proto/stagecoach/v1/job.proto: the coordinator answers with it, the
// client prints one that it made itself.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_PLAN_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_PLAN_H_

#include "plan/plan.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

v1::PlanJobResponse ToProto(const Plan& plan);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_PLAN_H_
