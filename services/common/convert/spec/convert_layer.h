// Conversion of the network between the wire form and network/network_spec.h; used by convert_spec.
// A network's kind is the field of that name in v1::Model, a layer's kind that in v1::Layer. A
// kind's fields are those of its message (services/common/convert/fields/convert_fields.h). Nothing
// here knows a kind.
// Errors: INVALID_ARGUMENT with the field path; nesting deeper than 8 residuals is refused.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_LAYER_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_LAYER_H_

#include "absl/status/statusor.h"
#include "network/network_spec.h"
#include "stagecoach/v1/layers.pb.h"
#include "stagecoach/v1/networks.pb.h"

namespace stagecoach {

// Fields of inner layers, in messages of kinds that have them.
inline constexpr char kInnerLayers[] = "layers", kEncoderLayers[] = "encoder";

// `path`: of the layer in the job, for errors.
void LayerToProto(const LayerSpec& layer, v1::Layer* proto);
absl::StatusOr<LayerSpec> LayerFromProto(const v1::Layer& proto, const std::string& path);

v1::Model ModelToProto(const NetworkSpec& spec);
absl::StatusOr<NetworkSpec> ModelFromProto(const v1::Model& proto);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_LAYER_H_
