#include "network/layers/norms.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_kind.h"
#include "operations/norms/layer_norm.h"
#include "operations/norms/rms_norm.h"

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

class RmsNormLayer final : public LayerKindOf<RmsNormSpec> {
  absl::StatusOr<ValueId> Write(const RmsNormSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const ValueId weight =
        builder.Float32(place, "weight", {builder.WidthOf(x)}, ParameterSpec::Init::kOnes);
    return builder.writer().Emit(
        "rms_norm", ToAttributes(RmsNormAttributes{.epsilon = spec.epsilon}), {x, weight})[0];
  }
  std::string FunctionOf(const RmsNormSpec& spec) const override {
    return absl::StrCat("rms_norm:", ExactText(spec.epsilon));
  }
};

class GroupNormLayer final : public LayerKindOf<GroupNormSpec> {
  absl::StatusOr<ValueId> Write(const GroupNormSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const int64_t width = builder.WidthOf(x);
    if (width % spec.groups != 0) {
      return FieldError(FieldPath(place, name(), "groups"), absl::StrCat(spec.groups),
                        absl::StrCat("must divide the ", width, " channels"));
    }
    const ValueId weight = builder.Float32(place, "weight", {width}, ParameterSpec::Init::kOnes);
    const ValueId bias = builder.Float32(place, "bias", {width}, ParameterSpec::Init::kZeros);
    const GroupNormAttributes attributes{.groups = spec.groups, .epsilon = spec.epsilon};
    return builder.writer().Emit("group_norm", ToAttributes(attributes), {x, weight, bias})[0];
  }
  std::string FunctionOf(const GroupNormSpec& spec) const override {
    return absl::StrCat("group_norm:", spec.groups, ":", ExactText(spec.epsilon));
  }
};

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

const LayerKind* LayerNormKind() {
  static const LayerNormLayer kind;
  return &kind;
}

const LayerKind* RmsNormKind() {
  static const RmsNormLayer kind;
  return &kind;
}

const LayerKind* GroupNormKind() {
  static const GroupNormLayer kind;
  return &kind;
}

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
