#include "network/layers/rms_norm.h"

#include "absl/strings/str_cat.h"
#include "network/layer_kind.h"
#include "operations/rms_norm.h"

namespace stagecoach {
namespace {

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

}  // namespace

const LayerKind* RmsNormKind() {
  static const RmsNormLayer kind;
  return &kind;
}

}  // namespace stagecoach
