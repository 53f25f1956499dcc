#include "network/layers/max_pool.h"

#include "network/layer_kind.h"
#include "network/layers/pool_fields.h"

namespace stagecoach {
namespace {

class MaxPoolLayer final : public LayerKindOf<MaxPoolSpec> {
  absl::StatusOr<ValueId> Write(const MaxPoolSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    LayerWriter& writer = builder.writer();
    ASSIGN_OR_RETURN(const PoolSteps steps, CheckedSteps(name(), spec, writer.type(x), place));
    const MaxPoolAttributes attributes{steps};
    return writer.Emit("max_pool", ToAttributes(attributes), {x})[0];
  }
  std::string FunctionOf(const MaxPoolSpec& spec) const override {
    return PoolFunction(name(), PoolStepsOf(spec));
  }
};

}  // namespace

const LayerKind* MaxPoolKind() {
  static const MaxPoolLayer kind;
  return &kind;
}

}  // namespace stagecoach
