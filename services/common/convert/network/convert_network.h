// Conversion of a network between its message (proto/stagecoach/v1/network.proto) and the value
// (network/network.h).
// Units:   a layer that stands in a network many times is in the message once.
// Errors:  NetworkFromProto takes any message: INVALID_ARGUMENT with the layer, what is wrong and
//          the remedy. Its network is the sender's: it writes the network again and compares.
// Threads: any.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_CONVERT_NETWORK_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_CONVERT_NETWORK_H_

#include "absl/status/statusor.h"
#include "network/network.h"
#include "stagecoach/v1/network.pb.h"

namespace stagecoach {

v1::Network ToProto(const Network& network);
absl::StatusOr<Network> NetworkFromProto(const v1::Network& proto);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_NETWORK_CONVERT_NETWORK_H_
