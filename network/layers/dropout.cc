// Dropout by itself. At rate 0 it is no call, but it takes its stream of random numbers.
#include "operations/dropout.h"

#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_builder.h"

namespace stagecoach {

absl::StatusOr<ValueId> BuildDropout(const DropoutSpec& spec, ValueId x, const LayerPlace& place,
                                     LayerBuilder& builder) {
  RETURN_IF_ERROR(CheckRate(place.path + ".dropout.rate", spec.rate));
  LayerWriter& writer = builder.writer();
  const int64_t draw = writer.TakeDraw();
  if (spec.rate == 0) return x;
  return writer.Emit("dropout", ToAttributes(DropoutAttributes{spec.rate, draw, false}), {x})[0];
}

}  // namespace stagecoach
