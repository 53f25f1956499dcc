#include "network/layers/relu.h"

#include "network/layer_kind.h"

namespace stagecoach {
namespace {

class ReluLayer final : public LayerKindOf<ReluSpec> {
  absl::StatusOr<ValueId> Write(const ReluSpec&, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    return builder.writer().Emit("relu", {}, {x})[0];
  }
};

}  // namespace

const LayerKind* ReluKind() {
  static const ReluLayer kind;
  return &kind;
}

}  // namespace stagecoach
