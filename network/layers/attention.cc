#include "network/layers/attention.h"

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "network/layer_kind.h"
#include "operations/attention.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

class AttentionLayer final : public LayerKindOf<AttentionSpec> {
  absl::StatusOr<ValueId> Write(const AttentionSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const int64_t width = builder.WidthOf(x);
    if (width % spec.heads != 0) {
      return FieldError(FieldPath(place, name(), "heads"), absl::StrCat(spec.heads),
                        absl::StrCat("must divide the width ", width));
    }
    const ValueId qkv_weight = builder.Weight(place, "qkv.weight", {3 * width, width}, kInitStddev);
    const ValueId qkv_bias = builder.Bias(place, "qkv.bias", {3 * width});
    const ValueId proj_weight =
        builder.Weight(place, "proj.weight", {width, width}, builder.BranchStddev(place));
    const ValueId proj_bias = builder.Bias(place, "proj.bias", {width});

    LayerWriter& writer = builder.writer();
    const Attributes with_bias = ToAttributes(LinearAttributes{.bias = true});
    const ValueId qkv = writer.Emit("linear", with_bias, {x, qkv_weight, qkv_bias})[0];
    const AttentionAttributes attributes{spec.heads, spec.dropout, writer.TakeDraw()};
    const ValueId out = writer.Emit("attention", ToAttributes(attributes), {qkv})[0];
    return writer.Emit("linear", with_bias, {out, proj_weight, proj_bias})[0];
  }
  std::string FunctionOf(const AttentionSpec& spec) const override {
    return absl::StrCat("attention:", spec.heads);
  }
};

}  // namespace

const LayerKind* AttentionKind() {
  static const AttentionLayer kind;
  return &kind;
}

}  // namespace stagecoach
