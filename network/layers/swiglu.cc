#include "network/layers/swiglu.h"

#include "absl/strings/str_cat.h"
#include "network/layer_kind.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

class SwigluLayer final : public LayerKindOf<SwigluSpec> {
  absl::StatusOr<ValueId> Write(const SwigluSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const int64_t width = builder.WidthOf(x);
    const ValueId gate_weight =
        builder.Weight(place, "gate.weight", {spec.hidden, width}, kInitStddev);
    const ValueId up_weight = builder.Weight(place, "up.weight", {spec.hidden, width}, kInitStddev);
    const ValueId down_weight =
        builder.Weight(place, "down.weight", {width, spec.hidden}, builder.BranchStddev(place));

    LayerWriter& writer = builder.writer();
    const Attributes plain = ToAttributes(LinearAttributes{});
    const ValueId gate = writer.Emit("linear", plain, {x, gate_weight})[0];
    const ValueId up = writer.Emit("linear", plain, {x, up_weight})[0];
    const ValueId hidden = writer.Emit("swiglu", {}, {gate, up})[0];
    return writer.Emit("linear", plain, {hidden, down_weight})[0];
  }
  std::string FunctionOf(const SwigluSpec& spec) const override {
    return absl::StrCat("swiglu:", spec.hidden);
  }
};

}  // namespace

const LayerKind* SwigluKind() {
  static const SwigluLayer kind;
  return &kind;
}

}  // namespace stagecoach
