#include "network/layers/batch_norm.h"

#include "absl/strings/str_cat.h"
#include "network/layer_kind.h"

namespace stagecoach {
namespace {

class BatchNormLayer final : public LayerKindOf<BatchNormSpec> {
  absl::StatusOr<ValueId> Write(const BatchNormSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    return WriteBatchNorm(spec, x, place, builder);
  }
  // The momentum is how it is trained.
  std::string FunctionOf(const BatchNormSpec& spec) const override {
    return absl::StrCat("batch_norm:", ExactText(spec.epsilon));
  }
};

}  // namespace

ValueId WriteBatchNorm(const BatchNormSpec& spec, ValueId x, const LayerPlace& place,
                       LayerBuilder& builder) {
  const Shape channels = {builder.WidthOf(x)};
  const ValueId weight = builder.Float32(place, "weight", channels, ParameterSpec::Init::kOnes);
  const ValueId bias = builder.Float32(place, "bias", channels, ParameterSpec::Init::kZeros);
  const ValueId mean = builder.State(place, "running_mean", channels, 0.0f);
  const ValueId variance = builder.State(place, "running_variance", channels, 1.0f);
  const BatchNormAttributes attributes{.epsilon = spec.epsilon, .momentum = spec.momentum};
  return builder.writer().Emit("batch_norm", ToAttributes(attributes),
                               {x, weight, bias, mean, variance})[0];
}

const LayerKind* BatchNormKind() {
  static const BatchNormLayer kind;
  return &kind;
}

}  // namespace stagecoach
