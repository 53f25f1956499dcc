#include "network/layers/group_norm.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "network/layer_kind.h"

namespace stagecoach {
namespace {

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

}  // namespace

const LayerKind* GroupNormKind() {
  static const GroupNormLayer kind;
  return &kind;
}

}  // namespace stagecoach
