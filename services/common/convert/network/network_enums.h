// The enums of a network and of its message.
// Errors: INVALID_ARGUMENT for a value that this version does not know.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_NETWORK_ENUMS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_NETWORK_ENUMS_H_

#include "absl/status/statusor.h"
#include "network/parameter.h"
#include "operations/value_type.h"
#include "stagecoach/v1/network.pb.h"

namespace stagecoach {

v1::Network::Element ToProto(Element element);
absl::StatusOr<Element> FromProto(v1::Network::Element proto);

v1::Network::Initial ToProto(ParameterSpec::Init init);
absl::StatusOr<ParameterSpec::Init> FromProto(v1::Network::Initial proto);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_NETWORK_ENUMS_H_
