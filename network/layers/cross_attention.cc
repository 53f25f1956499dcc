#include "network/layers/cross_attention.h"

#include <string>

#include "base/errors/status.h"
#include "network/layers/linear.h"
#include "operations/attention/cross_attention.h"

namespace stagecoach {

absl::StatusOr<ValueId> WriteCrossAttention(const CrossAttentionSpec& spec, ValueId x,
                                            ValueId memory, ValueId length, const LayerPlace& place,
                                            LayerBuilder& builder) {
  const int64_t inner = spec.heads * spec.head_width, width = builder.WidthOf(x);
  const auto linear = [&](const std::string& name, ValueId of, int64_t out) {
    const LayerPlace inside{.path = place.path, .prefix = place.prefix + name + "."};
    return BuildLayer(LinearSpec{.out = out, .bias = spec.bias}, of, inside, builder);
  };
  ASSIGN_OR_RETURN(const ValueId q, linear("q", x, inner));
  ASSIGN_OR_RETURN(const ValueId kv, linear("kv", memory, 2 * inner));
  LayerWriter& writer = builder.writer();
  const CrossAttentionAttributes attributes{
      .heads = spec.heads, .dropout = spec.dropout, .draw = writer.TakeDraw()};
  const ValueId out = writer.Emit("cross_attention", ToAttributes(attributes), {q, kv, length})[0];
  RETURN_IF_ERROR(writer.status());
  return linear("proj", out, width);
}

}  // namespace stagecoach
