// The one list of the networks that a job can name.
// Threads: any.
// Errors:  FindNetworkKind answers NOT_FOUND with the nearest known name; ExpandNetwork
//          INVALID_ARGUMENT with the field's path in the job.
#ifndef STAGECOACH_NETWORK_NETWORK_KINDS_H_
#define STAGECOACH_NETWORK_NETWORK_KINDS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/precision.h"
#include "network/network.h"
#include "network/network_kind.h"
#include "network/network_spec.h"

namespace stagecoach {

const std::vector<const NetworkKind*>& AllNetworkKinds();  // by name
absl::StatusOr<const NetworkKind*> FindNetworkKind(std::string_view name);

// The network that a job asks for.
absl::StatusOr<Network> ExpandNetwork(const NetworkSpec& spec,
                                      Precision precision = Precision::kFloat32);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NETWORK_KINDS_H_
