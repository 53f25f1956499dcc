#include "operations/attention/head_norm.h"

#include "operations/attention/packed_heads.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

ValueType HeadWeight(const PackedHeads& packed) {
  return WeightType(Element::kFloat32, {packed.head_width});
}

ValueType Statistics(const PackedHeads& packed) {
  return {Element::kFloat32, Leading::kSamples,
          Shape::Of({packed.rows(), {packed.heads + packed.key_heads}})};
}

class HeadNorm final : public OperationOf<HeadNormAttributes> {
 public:
  std::string_view name() const override { return "head_norm"; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const HeadNormAttributes& attributes, int64_t context,
                         int64_t head_width) {
      const int64_t keys = attributes.key_heads == 0 ? attributes.heads : attributes.key_heads;
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples({context, (attributes.heads + 2 * keys) * head_width}),
                                 Float32Weights({head_width}), Float32Weights({head_width})}};
    };
    return {with("one_head", {.heads = 1}, 3, 5), with("odd", {.heads = 3}, 7, 3),
            with("grouped", {.heads = 4, .key_heads = 2, .epsilon = 0.1}, 33, 12)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const HeadNormAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"qkv", "query_weight", "key_weight"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed =
        CheckPackedHeads("qkv", inputs[0], attributes.heads, attributes.key_heads);
    if (!packed.ok()) return packed.status();
    status = CheckType("query_weight", inputs[1], HeadWeight(*packed));
    if (status.ok()) status = CheckType("key_weight", inputs[2], HeadWeight(*packed));
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0], Statistics(*packed)};
  }
  Cost CostOfCall(const HeadNormAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kRmsNormFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const HeadNormAttributes& attributes, GradientWriter& writer) const override {
    const ValueId dy = writer.OutputGradient(0), qkv = writer.input(0), rstd = writer.output(1);
    const Attributes heads =
        ToAttributes(HeadNormGradientAttributes{attributes.heads, attributes.key_heads});
    if (writer.Wants(0)) {
      writer.Contribute(0, writer.Emit("head_norm_input_gradient", heads,
                                       {dy, qkv, writer.input(1), writer.input(2), rstd})[0]);
    }
    if (writer.Wants(1) || writer.Wants(2)) {
      writer.EmitAdding("head_norm_weight_gradient", heads, {dy, qkv, rstd}, {1, 2});
    }
  }
};

class HeadNormInputGradient final : public OperationOf<HeadNormGradientAttributes> {
 public:
  std::string_view name() const override { return "head_norm_input_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const HeadNormGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status =
        CheckOperands(name(), inputs, {"dy", "qkv", "query_weight", "key_weight", "rstd"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed =
        CheckPackedHeads("dy", inputs[0], attributes.heads, attributes.key_heads);
    if (!packed.ok()) return packed.status();
    status = CheckType("qkv", inputs[1], inputs[0]);
    if (status.ok()) status = CheckType("query_weight", inputs[2], HeadWeight(*packed));
    if (status.ok()) status = CheckType("key_weight", inputs[3], HeadWeight(*packed));
    if (status.ok()) status = CheckType("rstd", inputs[4], Statistics(*packed));
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const HeadNormGradientAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kRmsNormFlops.backward / 2 * TypeElements(types.outputs[0], samples)};
  }
};

class HeadNormWeightGradient final : public OperationOf<HeadNormGradientAttributes> {
 public:
  std::string_view name() const override { return "head_norm_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const HeadNormGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "qkv", "rstd"});
    if (status.ok()) status = CheckOperands(name(), adds, {"d_query_weight", "d_key_weight"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed =
        CheckPackedHeads("dy", inputs[0], attributes.heads, attributes.key_heads);
    if (!packed.ok()) return packed.status();
    status = CheckType("qkv", inputs[1], inputs[0]);
    if (status.ok()) status = CheckType("rstd", inputs[2], Statistics(*packed));
    if (status.ok()) status = CheckType("d_query_weight", adds[0], HeadWeight(*packed));
    if (status.ok()) status = CheckType("d_key_weight", adds[1], HeadWeight(*packed));
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const HeadNormGradientAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kRmsNormFlops.backward / 2 * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList HeadNormOperations() {
  static const HeadNorm norm;
  static const HeadNormInputGradient input;
  static const HeadNormWeightGradient weight;
  return {&norm, &input, &weight};
}

}  // namespace stagecoach
