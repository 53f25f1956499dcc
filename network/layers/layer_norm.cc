#include "network/layers/layer_norm.h"

#include "network/layer_kind.h"
#include "operations/layer_norm.h"

namespace stagecoach {
namespace {

class LayerNormLayer final : public LayerKindOf<LayerNormSpec> {
  absl::StatusOr<ValueId> Write(const LayerNormSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const int64_t width = builder.WidthOf(x);
    const ValueId weight = builder.Float32(place, "weight", {width}, ParameterSpec::Init::kOnes);
    const ValueId bias = builder.Float32(place, "bias", {width}, ParameterSpec::Init::kZeros);
    const LayerNormAttributes attributes{.epsilon = spec.epsilon};
    return builder.writer().Emit("layer_norm", ToAttributes(attributes), {x, weight, bias})[0];
  }
  std::string FunctionOf(const LayerNormSpec& spec) const override {
    if (spec.epsilon == LayerNormSpec().epsilon) return "layer_norm";
    return absl::StrCat("layer_norm:", ExactText(spec.epsilon));
  }
};

}  // namespace

const LayerKind* LayerNormKind() {
  static const LayerNormLayer kind;
  return &kind;
}

}  // namespace stagecoach
