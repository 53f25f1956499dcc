// Token plus learned position, then dropout.
#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_builder.h"
#include "operations/dropout.h"

namespace stagecoach {

absl::StatusOr<ValueId> BuildEmbedding(const EmbeddingSpec& spec, ValueId ids, int64_t vocabulary,
                                       int64_t width, const LayerPlace& place,
                                       LayerBuilder& builder) {
  RETURN_IF_ERROR(CheckRate(place.path + ".embedding.dropout", spec.dropout));
  LayerWriter& writer = builder.writer();
  const int64_t context = writer.type(ids).shape[0];
  const ValueId token = builder.Weight(place, "token.weight", {vocabulary, width}, kInitStddev);
  const ValueId position = builder.Weight(place, "position.weight", {context, width}, kInitStddev);
  RETURN_IF_ERROR(builder.CheckArrays(place));
  const ValueId y = writer.Emit("embedding", {}, {ids, token, position})[0];
  const int64_t draw = writer.TakeDraw();
  if (spec.dropout == 0) return y;
  return writer.Emit("dropout", ToAttributes(DropoutAttributes{spec.dropout, draw, true}), {y})[0];
}

}  // namespace stagecoach
