#include "network/layers/cross_attention.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layer_kind.h"
#include "operations/attention/cross_attention.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

class CrossAttentionLayer final : public LayerKindOf<CrossAttentionSpec> {
  absl::StatusOr<ValueId> Write(const CrossAttentionSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const SideInputs<ValueId>& sides = builder.side_inputs();
    if (!sides.memory.valid()) {
      return FieldError(place.path, std::string(name()),
                        "reads an encoder's output, and there is none: list the layers of an "
                        "`encoder`, or take attention");
    }
    const int64_t width = builder.WidthOf(x);
    RETURN_IF_ERROR(CheckHeads(spec, width, place));
    const int64_t inner = spec.heads * HeadWidthOf(spec, width);
    LayerWriter& writer = builder.writer();
    // [out, in] of a projection, and the deviation of its initial weights.
    const auto linear = [&](const std::string& of, ValueId rows, Shape shape, double stddev) {
      std::vector<ValueId> inputs = {
          rows, builder.Weight(place, (of + ".weight").c_str(), shape, stddev)};
      if (spec.bias) inputs.push_back(builder.Bias(place, (of + ".bias").c_str(), {shape[0]}));
      return writer.Emit("linear", ToAttributes(LinearAttributes{.bias = spec.bias}),
                         std::move(inputs))[0];
    };
    const ValueId q = linear("q", x, {inner, width}, kInitStddev);
    const ValueId kv =
        linear("kv", sides.memory, {2 * inner, builder.WidthOf(sides.memory)}, kInitStddev);
    const CrossAttentionAttributes attributes{
        .heads = spec.heads, .dropout = spec.dropout, .draw = writer.TakeDraw()};
    const ValueId out =
        writer.Emit("cross_attention", ToAttributes(attributes), {q, kv, sides.memory_length})[0];
    return linear("proj", out, {width, inner}, builder.BranchStddev(place));
  }

  static int64_t HeadWidthOf(const CrossAttentionSpec& spec, int64_t width) {
    return spec.head_width == 0 ? width / spec.heads : spec.head_width;
  }

  static absl::Status CheckHeads(const CrossAttentionSpec& spec, int64_t width,
                                 const LayerPlace& place) {
    if (spec.head_width == 0 && width % spec.heads != 0) {
      return FieldError(FieldPath(place, CrossAttentionSpec::kKind, "heads"),
                        absl::StrCat(spec.heads),
                        absl::StrCat("must divide the width ", width, ", or give a head_width"));
    }
    const int64_t head_width = HeadWidthOf(spec, width), most = kMaxHidden / (2 * spec.heads);
    if (head_width <= most) return absl::OkStatus();
    return FieldError(FieldPath(place, CrossAttentionSpec::kKind, "head_width"),
                      absl::StrCat(head_width),
                      absl::StrCat("must be <= ", most, " with ", spec.heads,
                                   " heads: 2 * heads * head_width may be ", kMaxHidden));
  }

  // What shapes do not tell: how many heads there are.
  std::string FunctionOf(const CrossAttentionSpec& spec) const override {
    return absl::StrCat("cross_attention:", spec.heads);
  }
};

}  // namespace

const LayerKind* CrossAttentionKind() {
  static const CrossAttentionLayer kind;
  return &kind;
}

}  // namespace stagecoach
