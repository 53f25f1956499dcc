#include "network/layers/average_pool.h"

#include "network/layer_kind.h"
#include "network/layers/pool_fields.h"

namespace stagecoach {
namespace {

class AveragePoolLayer final : public LayerKindOf<AveragePoolSpec> {
  absl::StatusOr<ValueId> Write(const AveragePoolSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    LayerWriter& writer = builder.writer();
    ASSIGN_OR_RETURN(const PoolSteps steps, CheckedSteps(name(), spec, writer.type(x), place));
    const AveragePoolAttributes attributes{steps, spec.count_padding};
    return writer.Emit("average_pool", ToAttributes(attributes), {x})[0];
  }
  std::string FunctionOf(const AveragePoolSpec& spec) const override {
    return PoolFunction(name(), PoolStepsOf(spec)) + (spec.count_padding ? ":count_padding" : "");
  }
};

}  // namespace

const LayerKind* AveragePoolKind() {
  static const AveragePoolLayer kind;
  return &kind;
}

}  // namespace stagecoach
