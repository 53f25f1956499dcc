// GELU by itself.
#include "network/layer_builder.h"

namespace stagecoach {

absl::StatusOr<ValueId> BuildGelu(ValueId x, LayerBuilder& builder) {
  return builder.writer().Emit("gelu", {}, {x})[0];
}

}  // namespace stagecoach
