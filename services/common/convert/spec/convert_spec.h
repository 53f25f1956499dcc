// Conversion of a job spec between the wire form (proto/stagecoach/v1/model.proto) and
// plan/job/job_spec.h.
// Errors:    FromProto: INVALID_ARGUMENT with the field path for a value that the domain does not
//            have, such as an unset choice or an unknown enum value. ExpandValidJob checks ranges.
// FromProto(ToProto(spec)) == spec for every spec.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_SPEC_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_SPEC_H_

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "stagecoach/v1/data.pb.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

v1::Precision ToProto(Precision precision);
absl::StatusOr<Precision> PrecisionFromProto(v1::Precision proto);
// With the paths as the domain has them, whatever `dataset` and `on_stages` say (data_places.h).
absl::StatusOr<DataSpec> DataFromProto(const v1::Data& proto);
v1::JobSpec ToProto(const JobSpec& spec);
absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto);
// Reads a job whose network is there already. Its model is read if this version knows it, and else
// left empty.
absl::StatusOr<JobSpec> JobBesideItsNetwork(const v1::JobSpec& proto);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_SPEC_H_
