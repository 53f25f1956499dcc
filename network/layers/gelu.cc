#include "network/layers/gelu.h"

#include "network/layer_kind.h"

namespace stagecoach {
namespace {

class GeluLayer final : public LayerKindOf<GeluSpec> {
  absl::StatusOr<ValueId> Write(const GeluSpec&, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    return builder.writer().Emit("gelu", {}, {x})[0];
  }
};

}  // namespace

const LayerKind* GeluKind() {
  static const GeluLayer kind;
  return &kind;
}

}  // namespace stagecoach
