#include "network/layers/mlp.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "network/layer_kind.h"
#include "operations/linear.h"
#include "operations/pointwise/dropout.h"

namespace stagecoach {
namespace {

class MlpLayer final : public LayerKindOf<MlpSpec> {
  absl::StatusOr<ValueId> Write(const MlpSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const int64_t width = builder.WidthOf(x);
    const ValueId up_weight = builder.Weight(place, "up.weight", {spec.hidden, width}, kInitStddev);
    const ValueId up_bias = builder.Bias(place, "up.bias", {spec.hidden});
    const ValueId down_weight =
        builder.Weight(place, "down.weight", {width, spec.hidden}, builder.BranchStddev(place));
    const ValueId down_bias = builder.Bias(place, "down.bias", {width});

    LayerWriter& writer = builder.writer();
    ValueId hidden = Activated(spec, {x, up_weight, up_bias}, writer);
    if (spec.dropout >
        0) {  // at rate 0 it takes no stream: there was none before there was this field
      const DropoutAttributes attributes{spec.dropout, writer.TakeDraw(), false};
      hidden = writer.Emit("dropout", ToAttributes(attributes), {hidden})[0];
    }
    return writer.Emit("linear", ToAttributes(LinearAttributes{.bias = true}),
                       {hidden, down_weight, down_bias})[0];
  }
  // The tanh form is computed with the product.
  static ValueId Activated(const MlpSpec& spec, std::vector<ValueId> inputs, LayerWriter& writer) {
    const LinearAttributes attributes{.bias = true, .gelu = !spec.exact_gelu};
    const std::vector<ValueId> made =
        writer.Emit("linear", ToAttributes(attributes), std::move(inputs));
    return spec.exact_gelu ? writer.Emit("gelu_erf", {}, {made[0]})[0] : made[1];
  }
  std::string FunctionOf(const MlpSpec& spec) const override {
    return absl::StrCat("mlp:", spec.hidden, spec.exact_gelu ? ":exact_gelu" : "");
  }
};

}  // namespace

const LayerKind* MlpKind() {
  static const MlpLayer kind;
  return &kind;
}

}  // namespace stagecoach
