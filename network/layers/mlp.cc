#include "network/layers/mlp.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_kind.h"
#include "operations/linear.h"
#include "operations/pointwise/dropout.h"

namespace stagecoach {
namespace {

class MlpLayer final : public LayerKindOf<MlpSpec> {
  absl::StatusOr<ValueId> Write(const MlpSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    if (spec.relu && spec.exact_gelu) {
      return FieldError(FieldPath(place, name(), "relu"), "true",
                        "takes the place of GELU, and there is exact_gelu: leave one out");
    }
    const int64_t width = builder.WidthOf(x);
    std::vector<ValueId> up = {
        builder.Weight(place, "up.weight", {spec.hidden, width}, kInitStddev)};
    if (spec.bias) up.push_back(builder.Bias(place, "up.bias", {spec.hidden}));
    std::vector<ValueId> down = {
        builder.Weight(place, "down.weight", {width, spec.hidden}, builder.BranchStddev(place))};
    if (spec.bias) down.push_back(builder.Bias(place, "down.bias", {width}));

    LayerWriter& writer = builder.writer();
    up.insert(up.begin(), x);
    ValueId hidden = Activated(spec, std::move(up), writer);
    if (spec.dropout >
        0) {  // at rate 0 it takes no stream: there was none before there was this field
      const DropoutAttributes attributes{spec.dropout, writer.TakeDraw(), false};
      hidden = writer.Emit("dropout", ToAttributes(attributes), {hidden})[0];
    }
    down.insert(down.begin(), hidden);
    return writer.Emit("linear", ToAttributes(LinearAttributes{.bias = spec.bias}),
                       std::move(down))[0];
  }
  // The tanh form is computed with the product.
  static ValueId Activated(const MlpSpec& spec, std::vector<ValueId> inputs, LayerWriter& writer) {
    const bool gelu = !spec.exact_gelu && !spec.relu;
    const LinearAttributes attributes{.bias = spec.bias, .gelu = gelu};
    const std::vector<ValueId> made =
        writer.Emit("linear", ToAttributes(attributes), std::move(inputs));
    if (gelu) return made[1];
    return writer.Emit(spec.relu ? "relu" : "gelu_erf", {}, {made[0]})[0];
  }
  std::string FunctionOf(const MlpSpec& spec) const override {
    return absl::StrCat("mlp:", spec.hidden, spec.exact_gelu ? ":exact_gelu" : "",
                        spec.relu ? ":relu" : "");
  }
};

}  // namespace

const LayerKind* MlpKind() {
  static const MlpLayer kind;
  return &kind;
}

}  // namespace stagecoach
