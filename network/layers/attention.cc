#include "network/layers/attention.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_kind.h"
#include "operations/attention/attention.h"
#include "operations/attention/head_norm.h"
#include "operations/attention/rotary.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

int64_t KeyHeadsOf(const AttentionSpec& spec) {
  return spec.key_heads == 0 ? spec.heads : spec.key_heads;
}

int64_t HeadWidthOf(const AttentionSpec& spec, int64_t width) {
  return spec.head_width == 0 ? width / spec.heads : spec.head_width;
}

absl::Status CheckHeadWidth(const AttentionSpec& spec, int64_t width, const LayerPlace& place) {
  const int64_t head_width = HeadWidthOf(spec, width), key_heads = KeyHeadsOf(spec);
  const std::string path = FieldPath(place, AttentionSpec::kKind, "head_width");
  const int64_t most = kMaxHidden / (spec.heads + 2 * key_heads);
  if (head_width > most) {
    return FieldError(
        path, absl::StrCat(head_width),
        absl::StrCat("must be <= ", most, " with ", spec.heads, " heads and ", key_heads,
                     " key_heads: (heads + 2 * key_heads) * head_width may be ", kMaxHidden));
  }
  if (spec.rotary_theta > 0 && head_width % 2 != 0) {
    return FieldError(path, absl::StrCat(head_width),
                      "must be even with rotary_theta: give an even head_width or other heads");
  }
  return absl::OkStatus();
}

absl::Status CheckHeads(const AttentionSpec& spec, int64_t width, const LayerPlace& place) {
  if (spec.head_width == 0 && width % spec.heads != 0) {
    return FieldError(FieldPath(place, AttentionSpec::kKind, "heads"), absl::StrCat(spec.heads),
                      absl::StrCat("must divide the width ", width));
  }
  if (spec.key_heads != 0 && spec.heads % spec.key_heads != 0) {
    return FieldError(FieldPath(place, AttentionSpec::kKind, "key_heads"),
                      absl::StrCat(spec.key_heads),
                      absl::StrCat("must divide the ", spec.heads, " heads"));
  }
  return CheckHeadWidth(spec, width, place);
}

std::optional<ValueId> BiasIf(bool wanted, const LayerPlace& place, const char* name, int64_t out,
                              LayerBuilder& builder) {
  if (!wanted) return std::nullopt;
  return builder.Bias(place, name, {out});
}

ValueId Linear(ValueId x, ValueId weight, std::optional<ValueId> bias, LayerWriter& writer) {
  std::vector<ValueId> inputs = {x, weight};
  if (bias.has_value()) inputs.push_back(*bias);
  const LinearAttributes attributes{.bias = bias.has_value()};
  return writer.Emit("linear", ToAttributes(attributes), std::move(inputs))[0];
}

absl::Status CheckCausal(const AttentionSpec& spec, const LayerPlace& place,
                         const SideInputs<ValueId>& sides) {
  const std::string path = FieldPath(place, AttentionSpec::kKind, "causal");
  if (sides.length.valid() && spec.causal) {
    return FieldError(path, "true",
                      "an encoder's rows attend to the whole source: set causal: false");
  }
  if (sides.documents.valid() && !spec.causal) {
    return FieldError(path, "false",
                      "only causal attention keeps documents apart: leave it out, or the "
                      "network's documents");
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueId> WriteAttention(const AttentionSpec& spec, ValueId x,
                                       const LayerPlace& place, LayerBuilder& builder) {
  const int64_t width = builder.WidthOf(x);
  RETURN_IF_ERROR(CheckHeads(spec, width, place));
  const int64_t key_heads = KeyHeadsOf(spec), head_width = HeadWidthOf(spec, width);
  const int64_t query_width = spec.heads * head_width;
  const int64_t packed_width = query_width + 2 * key_heads * head_width;
  const ValueId qkv_weight =
      builder.Weight(place, "qkv.weight", {packed_width, width}, kInitStddev);
  const std::optional<ValueId> qkv_bias =
      BiasIf(spec.bias || spec.qkv_bias, place, "qkv.bias", packed_width, builder);
  std::vector<ValueId> norms;
  if (spec.qk_norm) {
    for (const char* norm : {"query_norm.weight", "key_norm.weight"}) {
      norms.push_back(builder.Float32(place, norm, {head_width}, ParameterSpec::Init::kOnes));
    }
  }
  const ValueId proj_weight =
      builder.Weight(place, "proj.weight", {width, query_width}, builder.BranchStddev(place));
  const std::optional<ValueId> proj_bias = BiasIf(spec.bias, place, "proj.bias", width, builder);

  LayerWriter& writer = builder.writer();
  ValueId qkv = Linear(x, qkv_weight, qkv_bias, writer);
  if (spec.qk_norm) {
    const HeadNormAttributes attributes{.heads = spec.heads, .key_heads = spec.key_heads};
    qkv = writer.Emit("head_norm", ToAttributes(attributes), {qkv, norms[0], norms[1]})[0];
  }
  if (spec.rotary_theta > 0) {
    const RotaryAttributes attributes{.heads = spec.heads,
                                      .key_heads = spec.key_heads,
                                      .theta = spec.rotary_theta,
                                      .scaling = ScalingOf(spec.scaling)};
    qkv = writer.Emit("rotary", ToAttributes(attributes), {qkv})[0];
  }
  const AttentionAttributes attributes{.heads = spec.heads,
                                       .dropout = spec.dropout,
                                       .draw = writer.TakeDraw(),
                                       .key_heads = spec.key_heads,
                                       .full = !spec.causal};
  std::vector<ValueId> reads = {qkv};
  for (const ValueId keys : {builder.side_inputs().documents, builder.side_inputs().length}) {
    if (keys.valid()) reads.push_back(keys);
  }
  const ValueId out = writer.Emit("attention", ToAttributes(attributes), std::move(reads))[0];
  return Linear(out, proj_weight, proj_bias, writer);
}

class AttentionLayer final : public LayerKindOf<AttentionSpec> {
  absl::StatusOr<ValueId> Write(const AttentionSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    RETURN_IF_ERROR(CheckCausal(spec, place, builder.side_inputs()));
    RETURN_IF_ERROR(CheckRotaryScaling(spec.scaling, spec.rotary_theta,
                                       FieldPath(place, AttentionSpec::kKind, "")));
    return WriteAttention(spec, x, place, builder);
  }

  // What shapes do not tell: how many heads there are, and by what they are turned.
  std::string FunctionOf(const AttentionSpec& spec) const override {
    std::string text = absl::StrCat("attention:", spec.heads);
    if (spec.rotary_theta > 0) {
      absl::StrAppend(&text, ":rotary=", ExactText(spec.rotary_theta), ScalingText(spec.scaling));
    }
    if (!spec.causal) text += ":full";
    return text;
  }
};

}  // namespace

const LayerKind* AttentionKind() {
  static const AttentionLayer kind;
  return &kind;
}

}  // namespace stagecoach
