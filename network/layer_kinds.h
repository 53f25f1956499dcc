// The one list of the kinds of layers, and functions of a layer by the name of its kind.
// Threads: any.
// Errors:  FindLayerKind answers NOT_FOUND with the nearest known name.
#ifndef STAGECOACH_NETWORK_LAYER_KINDS_H_
#define STAGECOACH_NETWORK_LAYER_KINDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "network/layer_kind.h"
#include "network/layer_spec.h"

namespace stagecoach {

const std::vector<const LayerKind*>& AllLayerKinds();  // by name
absl::StatusOr<const LayerKind*> FindLayerKind(std::string_view name);

std::string LayerLabel(const LayerSpec& layer);  // "residual(layer_norm, attention)"
// Whether it is of this kind, or has a layer that is.
bool HasLayer(const LayerSpec& layer, std::string_view kind);
// See LayerKind::Function. CHECKs that there is such a kind.
std::string LayerFunction(const LayerSpec& layer);

// Standard deviation of the initial values of projections back into the trunk. They start smaller,
// as GPT-2's do: over the root of the number of layers that add to the trunk.
double BranchStddev(const std::vector<LayerSpec>& layers);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYER_KINDS_H_
