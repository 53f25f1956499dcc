// y = x weight^T + bias.
#include "operations/linear.h"

#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_builder.h"
#include "network/limits.h"

namespace stagecoach {

absl::StatusOr<ValueId> BuildLinear(const LinearSpec& spec, ValueId x, const LayerPlace& place,
                                    LayerBuilder& builder) {
  RETURN_IF_ERROR(CheckInteger(place.path + ".linear.out", spec.out, 1, kMaxVocabulary));
  std::vector<ValueId> inputs = {
      x, builder.Weight(place, "weight", {spec.out, builder.WidthOf(x)}, kInitStddev)};
  if (spec.bias) inputs.push_back(builder.Bias(place, "bias", {spec.out}));
  return builder.writer().Emit("linear", ToAttributes(LinearAttributes{.bias = spec.bias}),
                               std::move(inputs))[0];
}

}  // namespace stagecoach
