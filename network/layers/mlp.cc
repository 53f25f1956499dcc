#include "network/layers/mlp.h"

#include "absl/strings/str_cat.h"
#include "network/layer_kind.h"
#include "operations/linear.h"

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
    const std::vector<ValueId> hidden =
        writer.Emit("linear", ToAttributes(LinearAttributes{.bias = true, .gelu = true}),
                    {x, up_weight, up_bias});
    return writer.Emit("linear", ToAttributes(LinearAttributes{.bias = true}),
                       {hidden[1], down_weight, down_bias})[0];
  }
  std::string FunctionOf(const MlpSpec& spec) const override {
    return absl::StrCat("mlp:", spec.hidden);
  }
};

}  // namespace

const LayerKind* MlpKind() {
  static const MlpLayer kind;
  return &kind;
}

}  // namespace stagecoach
