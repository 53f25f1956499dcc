#include "operations/attention/cross_attention.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "operations/attention/attention_keys.h"
#include "operations/attention/packed_heads.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

ValueType LogSumExpType(const CrossHeads& heads) {
  return {Element::kFloat32, Leading::kSamples, {heads.heads, heads.rows}};
}

Cost CostOfScores(const CrossAttentionAttributes& attributes, const ValueType& q,
                  const ValueType& kv, const ScoreFlops& flops, int64_t samples) {
  const CrossHeads heads = CrossHeadsOf(attributes, q, kv);
  return AttentionCost(heads.rows * heads.columns, heads.heads, heads.head_width, flops, samples);
}

class CrossAttention final : public OperationOf<CrossAttentionAttributes> {
 public:
  std::string_view name() const override { return "cross_attention"; }
  // One for each of its probabilities, of columns that do not exist too.
  int64_t Drawn(const Attributes& attributes, const CallTypes& types) const override {
    const CrossAttentionAttributes values = Get(attributes);
    const int64_t rows = types.inputs[0].shape[0], columns = types.inputs[1].shape[0];
    return values.dropout > 0 ? values.heads * rows * columns : 0;
  }
  EvaluationForm Evaluation(const Attributes& attributes) const override {
    CrossAttentionAttributes without = Get(attributes);
    without.dropout = 0;
    return {.identity = false, .attributes = ToAttributes(without)};
  }
  // Keys are lengths up to the columns.
  std::optional<int64_t> RowsOfTable(const Attributes&, const CallTypes& types) const override {
    return types.inputs[1].shape[0] + 1;
  }
  std::vector<CallCase> Cases() const override {
    struct Size {
      int64_t samples, rows, columns, head_width;
    };
    const auto with = [](std::string name, const CrossAttentionAttributes& attributes,
                         const Size& size) {
      const int64_t keys = attributes.key_heads == 0 ? attributes.heads : attributes.key_heads;
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples({size.rows, attributes.heads * size.head_width}),
                                 Samples({size.columns, 2 * keys * size.head_width}),
                                 IdsBelow(size.columns + 2, {})},  // some outside of their range
                      .samples = size.samples,
                      .tolerance = 3e-5,
                      .bfloat16_tolerance = 2e-2};
    };
    return {with("one", {.heads = 2}, {2, 1, 1, 5}),
            with("one_row", {.heads = 2}, {5, 1, 9, 5}),
            with("one_column", {.heads = 2}, {2, 9, 1, 5}),
            with("odd", {.heads = 3}, {8, 7, 5, 3}),
            with("dropout", {.heads = 2, .dropout = 0.3, .draw = 1}, {3, 5, 9, 4}),
            with("long_rows", {.heads = 1}, {2, 131, 35, 33}),
            with("long_columns", {.heads = 1}, {3, 37, 131, 33}),
            with("one_key_head", {.heads = 3, .key_heads = 1}, {4, 7, 6, 5}),
            with("grouped", {.heads = 6, .dropout = 0.2, .key_heads = 2}, {3, 19, 40, 8})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const CrossAttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"q", "kv", "keys"});
    if (!status.ok()) return status;
    const absl::StatusOr<CrossHeads> heads = CheckCrossHeads(attributes, inputs[0], inputs[1]);
    if (!heads.ok()) return heads.status();
    status = CheckAttentionKeys(inputs[2], {});
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0], LogSumExpType(*heads)};
  }
  Cost CostOfCall(const CrossAttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return CostOfScores(
        attributes, types.inputs[0], types.inputs[1],
        {1, kSoftmaxFlops.forward, attributes.dropout > 0 ? kDropoutFlops.forward : 0}, samples);
  }
  void WriteGradient(const CrossAttentionAttributes& attributes,
                     GradientWriter& writer) const override {
    if (!writer.Wants(0) && !writer.Wants(1)) return;
    const std::vector<ValueId> gradients =
        writer.Emit("cross_attention_gradient", ToAttributes(attributes),
                    {writer.OutputGradient(0), writer.input(0), writer.input(1), writer.input(2),
                     writer.output(0), writer.output(1)});
    for (const int i : {0, 1}) {
      if (writer.Wants(i)) writer.Contribute(i, gradients[static_cast<size_t>(i)]);
    }
  }
};

class CrossAttentionGradient final : public OperationOf<CrossAttentionAttributes> {
 public:
  std::string_view name() const override { return "cross_attention_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const CrossAttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status =
        CheckOperands(name(), inputs, {"d_out", "q", "kv", "keys", "out", "log_sum_exp"});
    if (!status.ok()) return status;
    const absl::StatusOr<CrossHeads> heads = CheckCrossHeads(attributes, inputs[1], inputs[2]);
    if (!heads.ok()) return heads.status();
    status = CheckType("d_out", inputs[0], inputs[1]);
    if (status.ok()) status = CheckAttentionKeys(inputs[3], {});
    if (status.ok()) status = CheckType("out", inputs[4], inputs[1]);
    if (status.ok()) status = CheckType("log_sum_exp", inputs[5], LogSumExpType(*heads));
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[1], inputs[2]};
  }
  // Five products for the forward's two: it computes the scores once more.
  Cost CostOfCall(const CrossAttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return CostOfScores(
        attributes, types.inputs[1], types.inputs[2],
        {2.5, kSoftmaxFlops.backward, attributes.dropout > 0 ? kDropoutFlops.backward : 0},
        samples);
  }
};

}  // namespace

absl::StatusOr<CrossHeads> CheckCrossHeads(const CrossAttentionAttributes& attributes,
                                           const ValueType& q, const ValueType& kv) {
  const int64_t heads = attributes.heads;
  const int64_t keys = attributes.key_heads == 0 ? heads : attributes.key_heads;
  absl::Status status = CheckKeyHeads(heads, attributes.key_heads);
  if (status.ok()) status = CheckActivation("q", q, 2);
  if (status.ok()) status = CheckActivation("kv", kv, 2);
  if (!status.ok()) return status;
  if (q.shape.rank() != 2 || q.shape[1] % heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("q is ", FormatType(q), "; must be [rows, ", heads, " * head_width]"));
  }
  const int64_t head_width = q.shape[1] / heads;
  if (kv.shape.rank() != 2 || kv.shape[1] != 2 * keys * head_width) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kv is ", FormatType(kv), "; must be [columns, 2 * ", keys, " * ", head_width, "]"));
  }
  return CrossHeads{q.shape[0], kv.shape[0], heads, keys, head_width};
}

CrossHeads CrossHeadsOf(const CrossAttentionAttributes& attributes, const ValueType& q,
                        const ValueType& kv) {
  const absl::StatusOr<CrossHeads> heads = CheckCrossHeads(attributes, q, kv);
  CHECK_OK(heads.status());
  return *heads;
}

OperationList CrossAttentionOperations() {
  static const CrossAttention attention;
  static const CrossAttentionGradient gradient;
  return {&attention, &gradient};
}

}  // namespace stagecoach
