#include "network/layers/global_pool.h"

#include "network/layer_kind.h"
#include "network/layers/image_fields.h"

namespace stagecoach {
namespace {

class GlobalPoolLayer final : public LayerKindOf<GlobalPoolSpec> {
  absl::StatusOr<ValueId> Write(const GlobalPoolSpec&, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    RETURN_IF_ERROR(CheckReadsImage(name(), builder.writer().type(x), place));
    return builder.writer().Emit("global_average_pool", {}, {x})[0];
  }
};

}  // namespace

const LayerKind* GlobalPoolKind() {
  static const GlobalPoolLayer kind;
  return &kind;
}

}  // namespace stagecoach
