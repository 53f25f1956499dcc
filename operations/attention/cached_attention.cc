#include "operations/attention/cached_attention.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/attention/attention_keys.h"
#include "operations/attention/packed_heads.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

ValueType IdsType(Shape shape) { return {Element::kIds, Leading::kSamples, std::move(shape)}; }

absl::Status CheckHistory(const ValueType& history, Extent rows) {
  if (history.shape.rank() == 2) {
    return CheckType("history", history, IdsType(Shape::Of({rows, history.shape.extent(1)})));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("history is ", FormatType(history), "; must be ids[n, rows, context]"));
}

absl::Status CheckPool(const ValueType& keys, const ValueType& values, const PackedHeads& packed) {
  const int64_t width = packed.key_heads * packed.head_width;
  const bool rows = keys.shape.rank() == 2 && keys.shape[0] > 0;
  if (!rows || keys != WeightType(Element::kActivation, {keys.shape[0], width})) {
    return absl::InvalidArgumentError(absl::StrCat(
        "keys is ", FormatType(keys), "; must be an activation that exists once, [pool, ", width,
        "] with a pool of 1 row or more"));
  }
  return CheckType("values", values, keys);
}

struct Size {
  int64_t samples, rows, pool, context, head_width;
};

CallCase CaseOf(std::string name, const CachedAttentionAttributes& attributes, const Size& size) {
  const int64_t keys = attributes.key_heads == 0 ? attributes.heads : attributes.key_heads;
  const auto any = [](Shape shape, int64_t below) {
    return CaseOperand{IdsType(std::move(shape)), Fill::kAnyIds, below};
  };
  const CaseOperand pool = Weights({size.pool, keys * size.head_width});
  return {.name = std::move(name),
          .attributes = ToAttributes(attributes),
          .inputs = {Samples({size.rows, (attributes.heads + 2 * keys) * size.head_width}),
                     {IdsType({size.rows}), Fill::kPlaces, size.pool},
                     IdsBelow(size.context, {size.rows}),
                     any({size.rows, size.context}, size.pool + 2)},
          .adds = {pool, pool},
          .samples = size.samples,
          .differentiable = false,
          .tolerance = 3e-5,
          .bfloat16_tolerance = 2e-2};
}

// Most positions are outside of their range.
CallCase WithDeadRows(CallCase of) {
  of.inputs[2].fill = Fill::kAnyIds;
  of.inputs[2].below += 2;
  return of;
}

class CachedAttention final : public OperationOf<CachedAttentionAttributes> {
 public:
  std::string_view name() const override { return "cached_attention"; }
  std::vector<CallCase> Cases() const override {
    return {CaseOf("one_row", {.heads = 2}, {1, 1, 3, 4, 5}),
            CaseOf("odd", {.heads = 3}, {2, 7, 13, 9, 5}),
            CaseOf("grouped", {.heads = 6, .key_heads = 2}, {3, 5, 16, 20, 8}),
            CaseOf("one_key_head", {.heads = 3, .key_heads = 1}, {2, 3, 40, 7, 17}),
            WithDeadRows(CaseOf("dead_rows", {.heads = 2}, {2, 11, 21, 2, 4})),
            CaseOf("long_history", {.heads = 2}, {2, 5, 60, 300, 33}),
            CaseOf("wide_heads", {.heads = 1}, {1, 37, 50, 35, 130})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const CachedAttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"qkv", "places", "positions", "history"});
    if (status.ok()) status = CheckOperands(name(), adds, {"keys", "values"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed =
        CheckPackedHeads("qkv", inputs[0], attributes.heads, attributes.key_heads);
    if (!packed.ok()) return packed.status();
    const ValueType of_rows = IdsType(Shape::Of({packed->rows()}));
    status = CheckType("places", inputs[1], of_rows);
    if (status.ok()) status = CheckType("positions", inputs[2], of_rows);
    if (status.ok()) status = CheckHistory(inputs[3], packed->rows());
    if (status.ok()) status = CheckPool(adds[0], adds[1], *packed);
    if (!status.ok()) return status;
    return std::vector<ValueType>{
        ActivationType(Shape::Of({packed->rows(), {packed->query_width()}}))};
  }
  // Of rows with a whole history: types do not tell positions.
  Cost CostOfCall(const CachedAttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    const int64_t scores = types.inputs[3].shape[0] * types.inputs[3].shape[1];
    const PackedHeads packed =
        PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
    return AttentionCost(scores, packed.heads, packed.head_width, {1, kSoftmaxFlops.forward, 0},
                         samples);
  }
};

}  // namespace

CachedHeads CachedHeadsOf(const CachedAttentionAttributes& attributes, const CallTypes& types) {
  const PackedHeads packed = PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
  return {.heads = packed.heads,
          .key_heads = packed.key_heads,
          .head_width = packed.head_width,
          .context = types.inputs[3].shape[1],
          .pool = types.adds[0].shape[0]};
}

OperationList CachedAttentionOperations() {
  static const CachedAttention attention;
  return {&attention};
}

}  // namespace stagecoach
