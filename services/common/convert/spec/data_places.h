// The fields `dataset` and `on_stages` of a job's data and of `initialize`: the domain has paths
// alone. A relative path in data set NAME becomes "store:/data/NAME/PATH" (plan/data/data_set_path.h),
// one in a folder of the stages' machines becomes an absolute path. ToProto gives neither field back.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT naming field, value and remedy.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_DATA_PLACES_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_DATA_PLACES_H_

#include "absl/status/status.h"
#include "plan/job/job_spec.h"
#include "stagecoach/v1/data.pb.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

// `data` and `initialize` have the message's paths; they get those of the domain.
absl::Status PlaceData(const v1::Data& proto, DataSpec* data);
absl::Status PlaceInitialize(const v1::Initialize& proto, InitializeSpec* initialize);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_DATA_PLACES_H_
