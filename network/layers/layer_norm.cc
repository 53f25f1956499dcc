// Layer norm over the width, with weight and bias.
#include "operations/layer_norm.h"

#include "network/layer_builder.h"

namespace stagecoach {

absl::StatusOr<ValueId> BuildLayerNorm(ValueId x, const LayerPlace& place, LayerBuilder& builder) {
  const int64_t width = builder.WidthOf(x);
  const ValueId weight = builder.Float32(place, "weight", {width}, ParameterSpec::Init::kOnes);
  const ValueId bias = builder.Float32(place, "bias", {width}, ParameterSpec::Init::kZeros);
  return builder.writer().Emit("layer_norm", ToAttributes(LayerNormAttributes{}),
                               {x, weight, bias})[0];
}

}  // namespace stagecoach
