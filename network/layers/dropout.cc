#include "network/layers/dropout.h"

#include "network/layer_kind.h"
#include "operations/pointwise/dropout.h"

namespace stagecoach {
namespace {

class DropoutLayer final : public LayerKindOf<DropoutSpec> {
  absl::StatusOr<ValueId> Write(const DropoutSpec& spec, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    LayerWriter& writer = builder.writer();
    const int64_t draw = writer.TakeDraw();
    if (spec.rate == 0) return x;
    return writer.Emit("dropout", ToAttributes(DropoutAttributes{spec.rate, draw, false}), {x})[0];
  }
  // How a network is trained, and no part of its function.
  std::string FunctionOf(const DropoutSpec&) const override { return ""; }
};

}  // namespace

const LayerKind* DropoutKind() {
  static const DropoutLayer kind;
  return &kind;
}

}  // namespace stagecoach
