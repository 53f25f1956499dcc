#include "network/layers/flatten.h"

#include "network/layer_kind.h"
#include "operations/reshape.h"

namespace stagecoach {
namespace {

class FlattenLayer final : public LayerKindOf<FlattenSpec> {
  absl::StatusOr<ValueId> Write(const FlattenSpec&, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    LayerWriter& writer = builder.writer();
    const Shape& shape = writer.type(x).shape;
    if (shape.rank() == 1) return x;
    const ReshapeAttributes attributes{.shape = {shape.elements()}};
    return writer.Emit("reshape", ToAttributes(attributes), {x})[0];
  }
};

}  // namespace

const LayerKind* FlattenKind() {
  static const FlattenLayer kind;
  return &kind;
}

}  // namespace stagecoach
