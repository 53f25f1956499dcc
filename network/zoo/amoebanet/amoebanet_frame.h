// The common parts of AmoebaNets (network/zoo/amoebanet/amoebanet.h): stem, order of the cells,
// head. L + 6 layers with the stem for ImageNet, L + 4 with the small one.
// Errors: INVALID_ARGUMENT with the field's path in the job, its value and the remedy.
#ifndef STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_FRAME_H_
#define STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_FRAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/amoebanet/amoebanet_cell.h"

namespace stagecoach {

struct AmoebanetFrame {
  std::string name;  // in the text of network/names/network_text.h
  CellTable normal, reduction;
  AmoebanetVariant variant = AmoebanetVariant::kReference;
};

// The fields are in their ranges. `path`: of the network in the job.
absl::StatusOr<Network> WriteAmoebanet(const AmoebanetFields& fields, const AmoebanetFrame& frame,
                                       const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_FRAME_H_
