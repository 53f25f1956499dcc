// Linear up, GELU, linear down.
#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_builder.h"
#include "network/limits.h"
#include "operations/linear.h"

namespace stagecoach {

absl::StatusOr<ValueId> BuildMlp(const MlpSpec& spec, ValueId x, const LayerPlace& place,
                                 LayerBuilder& builder) {
  RETURN_IF_ERROR(CheckInteger(place.path + ".mlp.hidden", spec.hidden, 1, kMaxHidden));
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

}  // namespace stagecoach
