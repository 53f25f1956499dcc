#include "network/zoo/layer_pieces.h"

#include "base/status.h"
#include "network/layer_kinds.h"

namespace stagecoach {

absl::StatusOr<ValueId> LayerPieces::Add(const LayerSpec& piece, const std::string& name,
                                         ValueId x) {
  return BuildLayer(piece, x, {.path = path_, .prefix = name + "."}, builder_);
}

absl::StatusOr<ValueId> LayerPieces::AddConvolution(ConvolutionSpec convolution,
                                                    const std::string& name, ValueId x) {
  convolution.bias = false;
  ASSIGN_OR_RETURN(x, Add(convolution, name + "convolution", x));
  return AddBatchNorm(name, x);
}

}  // namespace stagecoach
