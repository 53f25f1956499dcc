// Conversion of the network between the wire form and plan/model_spec.h; used by convert_spec.
// Errors: INVALID_ARGUMENT with the field path; nesting deeper than 8 residuals is refused.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_LAYER_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_LAYER_H_

#include "absl/status/statusor.h"
#include "plan/model_spec.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

v1::Model ModelToProto(const ModelSpec& spec);
absl::StatusOr<ModelSpec> ModelFromProto(const v1::Model& proto);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_LAYER_H_
