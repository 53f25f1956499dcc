#include "operations/attention/attention.h"

#include "operations/attention/attention_keys.h"
#include "operations/attention/packed_heads.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

absl::StatusOr<PackedHeads> CheckQkv(const AttentionAttributes& attributes, const ValueType& qkv) {
  return CheckPackedHeads("qkv", qkv, attributes.heads, attributes.key_heads);
}

ValueType OutType(const PackedHeads& packed) {
  return ActivationType({packed.context, packed.query_width()});
}

ValueType LogSumExpType(const PackedHeads& packed) {
  return {Element::kFloat32, Leading::kSamples, {packed.heads, packed.context}};
}

// Operands of a call, with `keys` behind them if there is one more.
absl::Status CheckWithKeys(std::string_view operation, std::span<const ValueType> inputs,
                           std::initializer_list<std::string_view> without,
                           std::initializer_list<std::string_view> with) {
  return CheckOperands(operation, inputs, inputs.size() > without.size() ? with : without);
}

absl::Status CheckKeys(const AttentionAttributes& attributes, const ValueType& keys,
                       int64_t context) {
  return CheckAttentionKeys(keys, attributes.full ? Shape{} : Shape{context});
}

// Causal: row r has r + 1 scores; in full each has all.
Cost CostOfScores(const AttentionAttributes& attributes, const ValueType& qkv,
                  const ScoreFlops& flops, int64_t samples) {
  const PackedHeads packed = PackedHeadsOf(qkv, attributes.heads, attributes.key_heads);
  const int64_t scores =
      attributes.full ? packed.context * packed.context : packed.context * (packed.context + 1) / 2;
  return AttentionCost(scores, packed.heads, packed.head_width, flops, samples);
}

// The case again with keys below `below`.
CallCase WithKeys(CallCase of, std::string name, int64_t samples, int64_t below) {
  const auto attributes = *FromAttributes<AttentionAttributes>(of.attributes);
  of.inputs.push_back(
      IdsBelow(below, attributes.full ? Shape{} : Shape{of.inputs[0].type.shape[0]}));
  of.name = std::move(name);
  of.samples = samples;
  return of;
}

class Attention final : public OperationOf<AttentionAttributes> {
 public:
  std::string_view name() const override { return "attention"; }
  // One for each of its probabilities, of those that the causal mask hides too.
  int64_t Drawn(const Attributes& attributes, const CallTypes& types) const override {
    const int64_t context = types.inputs[0].shape[0];
    const AttentionAttributes values = Get(attributes);
    return values.dropout > 0 ? values.heads * context * context : 0;
  }
  EvaluationForm Evaluation(const Attributes& attributes) const override {
    AttentionAttributes without = Get(attributes);
    without.dropout = 0;
    return {.identity = false, .attributes = ToAttributes(without)};
  }
  // Keys are lengths up to the context, or rows of it.
  std::optional<int64_t> RowsOfTable(const Attributes& attributes,
                                     const CallTypes& types) const override {
    if (types.inputs.size() == 1) return std::nullopt;
    return types.inputs[0].shape[0] + (Get(attributes).full ? 1 : 0);
  }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const AttentionAttributes& attributes, int64_t context,
                         int64_t head_width) {
      const int64_t keys = attributes.key_heads == 0 ? attributes.heads : attributes.key_heads;
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples({context, (attributes.heads + 2 * keys) * head_width})},
                      .tolerance = 3e-5,
                      .bfloat16_tolerance = 2e-2};
    };
    const CallCase odd = with("odd", {.heads = 3}, 7, 5),
                   full = with("full", {.heads = 3, .full = true}, 7, 5);
    const CallCase long_grouped =
        with("", {.heads = 4, .dropout = 0.2, .draw = 1, .key_heads = 2}, 131, 8);
    const CallCase full_long_grouped =
        with("", {.heads = 4, .dropout = 0.2, .key_heads = 2, .full = true}, 131, 8);
    return {with("one_row", {.heads = 2}, 1, 5), odd,
            with("dropout", {.heads = 2, .dropout = 0.3, .draw = 1}, 9, 4),
            with("long_rows", {.heads = 1}, 67, 33),
            with("one_key_head", {.heads = 3, .key_heads = 1}, 7, 5),
            with("grouped", {.heads = 6, .dropout = 0.2, .key_heads = 2}, 19, 8), full,
            with("full_long_rows", {.heads = 1, .full = true}, 131, 33),
            with("full_grouped", {.heads = 4, .dropout = 0.2, .key_heads = 2, .full = true}, 37, 8),
            // Some of the keys are outside of their range.
            WithKeys(with("", {.heads = 2, .full = true}, 1, 5), "length_of_one_row", 3, 3),
            WithKeys(full, "lengths", 9, 9), WithKeys(full_long_grouped, "long_lengths", 4, 132),
            WithKeys(with("", {.heads = 2}, 1, 5), "documents_of_one_row", 3, 2),
            WithKeys(odd, "documents", 5, 5), WithKeys(long_grouped, "long_documents", 3, 120)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckWithKeys(name(), inputs, {"qkv"}, {"qkv", "keys"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed = CheckQkv(attributes, inputs[0]);
    if (!packed.ok()) return packed.status();
    if (inputs.size() > 1) status = CheckKeys(attributes, inputs[1], packed->context);
    if (!status.ok()) return status;
    return std::vector<ValueType>{OutType(*packed), LogSumExpType(*packed)};
  }
  Cost CostOfCall(const AttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return CostOfScores(
        attributes, types.inputs[0],
        {1, kSoftmaxFlops.forward, attributes.dropout > 0 ? kDropoutFlops.forward : 0}, samples);
  }
  void WriteGradient(const AttentionAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    std::vector<ValueId> reads = {writer.OutputGradient(0), writer.input(0), writer.output(0),
                                  writer.output(1)};
    if (writer.inputs() > 1) reads.push_back(writer.input(1));
    writer.Contribute(0, writer.Emit("attention_gradient", ToAttributes(attributes), reads)[0]);
  }
};

class AttentionGradient final : public OperationOf<AttentionAttributes> {
 public:
  std::string_view name() const override { return "attention_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckWithKeys(name(), inputs, {"d_out", "qkv", "out", "log_sum_exp"},
                                        {"d_out", "qkv", "out", "log_sum_exp", "keys"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed = CheckQkv(attributes, inputs[1]);
    if (!packed.ok()) return packed.status();
    status = CheckType("d_out", inputs[0], OutType(*packed));
    if (status.ok()) status = CheckType("out", inputs[2], inputs[0]);
    if (status.ok()) status = CheckType("log_sum_exp", inputs[3], LogSumExpType(*packed));
    if (status.ok() && inputs.size() > 4) {
      status = CheckKeys(attributes, inputs[4], packed->context);
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[1]};
  }
  // Five products for the forward's two: it computes the scores once more.
  Cost CostOfCall(const AttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return CostOfScores(
        attributes, types.inputs[1],
        {2.5, kSoftmaxFlops.backward, attributes.dropout > 0 ? kDropoutFlops.backward : 0},
        samples);
  }
};

}  // namespace

OperationList AttentionOperations() {
  static const Attention attention;
  static const AttentionGradient gradient;
  return {&attention, &gradient};
}

}  // namespace stagecoach
