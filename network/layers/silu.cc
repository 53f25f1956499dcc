#include "network/layers/silu.h"

#include "network/layer_kind.h"

namespace stagecoach {
namespace {

class SiluLayer final : public LayerKindOf<SiluSpec> {
  absl::StatusOr<ValueId> Write(const SiluSpec&, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    return builder.writer().Emit("silu", {}, {x})[0];
  }
};

}  // namespace

const LayerKind* SiluKind() {
  static const SiluLayer kind;
  return &kind;
}

}  // namespace stagecoach
