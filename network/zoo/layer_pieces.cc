#include "network/zoo/layer_pieces.h"

#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "operations/pointwise/drop_path.h"

namespace stagecoach {

absl::StatusOr<ValueId> LayerPieces::Add(const LayerSpec& piece, const std::string& name,
                                         ValueId x) {
  return BuildLayer(piece, x, {.path = path_, .prefix = name + "."}, builder_);
}

absl::StatusOr<ValueId> LayerPieces::AddConvolution(ConvolutionSpec convolution,
                                                    const std::string& name, ValueId x) {
  convolution.bias = false;
  ASSIGN_OR_RETURN(x, Add(convolution, name + "convolution", x));
  return AddNorm(name, x);
}

void LayerPieces::BeginLastNormAtZero() {
  builder_.BeginAtZero(builder_.parameters() - 2);  // weight and bias
}

ValueId LayerPieces::DropPath(double rate, ValueId x) {
  const int64_t draw = writer().TakeDraw();
  if (rate == 0) return x;
  return writer().Emit("drop_path", ToAttributes(DropPathAttributes{rate, draw}), {x})[0];
}

}  // namespace stagecoach
