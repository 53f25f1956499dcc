// Branch: a residual of the zoo's transformers with its norm, as one layer. The norm stands in front
// of the branch, or behind the sum as in the first Transformer (Vaswani et al., 1706.03762, section
// 3.1).
// Errors: INVALID_ARGUMENT with the path of the network in the job.
#ifndef STAGECOACH_NETWORK_ZOO_BRANCH_H_
#define STAGECOACH_NETWORK_ZOO_BRANCH_H_

#include <string>

#include "absl/status/statusor.h"
#include "network/layer_builder.h"
#include "network/layer_spec.h"
#include "network/network_builder.h"

namespace stagecoach {

enum class NormPlace { kPre, kPost };

struct Branch {
  LayerSpec layer, norm;  // their parameters have the kinds in front: "attention.", "layer_norm."
  NormPlace place = NormPlace::kPre;
  double dropout = 0;  // of the branch, before the sum
};

absl::StatusOr<WireId> AddBranch(const Branch& branch, const std::string& path, WireId x,
                                 const SideInputs<WireId>& sides, NetworkBuilder* builder);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_BRANCH_H_
