#include "operations/attention.h"

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

absl::Status CheckQkv(const AttentionAttributes& attributes, const ValueType& qkv) {
  absl::Status status = CheckActivation("qkv", qkv, 2);
  if (!status.ok()) return status;
  if (qkv.shape.rank() == 2 && qkv.shape[1] % (3 * attributes.heads) == 0) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("qkv is ", FormatType(qkv), "; must be [context, 3 * width] with a width that ",
                   attributes.heads, " heads divide"));
}

ValueType OutType(const ValueType& qkv) { return ActivationType({qkv.shape[0], qkv.shape[1] / 3}); }

ValueType LogSumExpType(const AttentionAttributes& attributes, const ValueType& qkv) {
  return {Element::kFloat32, Leading::kSamples, {attributes.heads, qkv.shape[0]}};
}

// Causal: row r has r + 1 scores. `products` in units of the forward's two.
Cost CausalCost(const AttentionAttributes& attributes, const ValueType& qkv, double products,
                int64_t score_flops, int64_t dropout_flops, int64_t samples) {
  const int64_t context = qkv.shape[0], width = qkv.shape[1] / 3;
  const int64_t scores = context * (context + 1) / 2;
  const int64_t forward = 2 * 2 * scores * width;
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

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AttentionAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands("attention", inputs, {"qkv"});
    if (status.ok()) status = CheckQkv(attributes, inputs[0]);
    if (!status.ok()) return status;
    return std::vector<ValueType>{OutType(inputs[0]), LogSumExpType(attributes, inputs[0])};
  }
  Cost CostOfCall(const AttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return CausalCost(attributes, types.inputs[0], 1, kSoftmaxFlops.forward, kDropoutFlops.forward,
                      samples);
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
    if (status.ok()) status = CheckQkv(attributes, inputs[1]);
    if (!status.ok()) return status;
    status = CheckType("d_out", inputs[0], OutType(inputs[1]));
    if (status.ok()) status = CheckType("out", inputs[2], inputs[0]);
    if (status.ok()) {
      status = CheckType("log_sum_exp", inputs[3], LogSumExpType(attributes, inputs[1]));
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[1]};
  }
  // Five products for the forward's two: it computes the scores once more.
  Cost CostOfCall(const AttentionAttributes& attributes, const CallTypes& types,
                  int64_t samples) const override {
    return CausalCost(attributes, types.inputs[1], 2.5, kSoftmaxFlops.backward,
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
