#include "operations/attention/attention.h"

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
  return ActivationType(Shape::Of({packed.rows(), {packed.query_width()}}));
}

ValueType LogSumExpType(const PackedHeads& packed) {
  return {Element::kFloat32, Leading::kSamples, Shape::Of({{packed.heads}, packed.rows()})};
}

// Causal: row r has r + 1 scores; in full each has all. `products` in units of the forward's two.
Cost AttentionCost(const AttentionAttributes& attributes, const ValueType& qkv, double products,
                   int64_t score_flops, int64_t dropout_flops, int64_t samples) {
  const PackedHeads packed = PackedHeadsOf(qkv, attributes.heads, attributes.key_heads);
  const int64_t scores =
      attributes.full ? packed.context * packed.context : packed.context * (packed.context + 1) / 2;
  const int64_t forward = 4 * scores * packed.query_width();
  Cost cost;
  cost.products = static_cast<int64_t>(products * static_cast<double>(forward)) * samples;
  const int64_t each = score_flops + (attributes.dropout > 0 ? dropout_flops : 0);
  cost.flops = cost.products + each * attributes.heads * scores * samples;
  return cost;
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
    return {
        with("one_row", {.heads = 2}, 1, 5),
        with("odd", {.heads = 3}, 7, 5),
        with("dropout", {.heads = 2, .dropout = 0.3, .draw = 1}, 9, 4),
        with("long_rows", {.heads = 1}, 67, 33),
        with("one_key_head", {.heads = 3, .key_heads = 1}, 7, 5),
        with("grouped", {.heads = 6, .dropout = 0.2, .key_heads = 2}, 19, 8),
        with("full", {.heads = 3, .full = true}, 7, 5),
        with("full_long_rows", {.heads = 1, .full = true}, 131, 33),
        with("full_grouped", {.heads = 4, .dropout = 0.2, .key_heads = 2, .full = true}, 37, 8)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    const absl::Status status = CheckOperands("attention", inputs, {"qkv"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed = CheckQkv(attributes, inputs[0]);
    if (!packed.ok()) return packed.status();
    return std::vector<ValueType>{OutType(*packed), LogSumExpType(*packed)};
  }
  Cost CostOfCall(const AttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return AttentionCost(attributes, types.inputs[0], 1, kSoftmaxFlops.forward,
                         kDropoutFlops.forward, samples);
  }
  void WriteGradient(const AttentionAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    writer.Contribute(0, writer.Emit("attention_gradient", ToAttributes(attributes),
                                     {writer.OutputGradient(0), writer.input(0), writer.output(0),
                                      writer.output(1)})[0]);
  }
};

class AttentionGradient final : public OperationOf<AttentionAttributes> {
 public:
  std::string_view name() const override { return "attention_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"d_out", "qkv", "out", "log_sum_exp"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed = CheckQkv(attributes, inputs[1]);
    if (!packed.ok()) return packed.status();
    status = CheckType("d_out", inputs[0], OutType(*packed));
    if (status.ok()) status = CheckType("out", inputs[2], inputs[0]);
    if (status.ok()) status = CheckType("log_sum_exp", inputs[3], LogSumExpType(*packed));
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[1]};
  }
  // Five products for the forward's two: it computes the scores once more.
  Cost CostOfCall(const AttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return AttentionCost(attributes, types.inputs[1], 2.5, kSoftmaxFlops.backward,
                         kDropoutFlops.backward, samples);
  }
};

}  // namespace

OperationList AttentionOperations() {
  static const Attention attention;
  static const AttentionGradient gradient;
  return {&attention, &gradient};
}

}  // namespace stagecoach
