#include "operations/attention/embedding.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

absl::Status CheckIds(const ValueType& ids) {
  if (ids.element == Element::kIds && ids.leading == Leading::kSamples && ids.shape.rank() == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("ids are " + FormatType(ids) +
                                    "; must be ids of one extent, the context");
}

// Of a context at least as long.
absl::Status CheckPositions(std::string_view operand, const ValueType& table, Element element,
                            int64_t context, int64_t width) {
  const int64_t rows = table.shape.rank() == 2 ? std::max(context, table.shape[0]) : context;
  return CheckType(operand, table, WeightType(element, {rows, width}));
}

class Embedding final : public OperationOf<EmbeddingAttributes> {
 public:
  std::string_view name() const override { return "embedding"; }
  std::vector<CallCase> Cases() const override {
    // Fewer ids than rows: they repeat, and each device adds them in an order of its own.
    constexpr double kOrderOfSums = 2e-6;
    const auto of = [](std::string name, int64_t samples, int64_t context, int64_t vocabulary,
                       int64_t width) {
      return CallCase{.name = std::move(name),
                      .inputs = {IdsBelow(vocabulary, {context}), Weights({vocabulary, width}),
                                 Weights({context, width})},
                      .samples = samples,
                      .tolerance = kOrderOfSums};
    };
    return {of("one", 1, 1, 7, 1),
            of("few_ids", 3, 11, 3, 5),
            of("odd", 3, 64, 256, 17),
            of("wide", 4, 256, 256, 130),
            of("large_table", 1, 100, 1000, 33),
            CallCase{.name = "tokens_only",
                     .attributes = ToAttributes(EmbeddingAttributes{.tokens_only = true}),
                     .inputs = {IdsBelow(5, {13}), Weights({5, 9})},
                     .samples = 3,
                     .tolerance = kOrderOfSums}};
  }
  std::optional<int64_t> RowsOfTable(const Attributes&, const CallTypes& types) const override {
    return types.inputs[1].shape[0];
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const EmbeddingAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = attributes.tokens_only
                              ? CheckOperands("embedding", inputs, {"ids", "token"})
                              : CheckOperands("embedding", inputs, {"ids", "token", "position"});
    if (status.ok()) status = CheckIds(inputs[0]);
    if (!status.ok()) return status;
    if (inputs[1].shape.rank() != 2) {
      return absl::InvalidArgumentError("token is " + FormatType(inputs[1]) +
                                        "; must be [vocabulary, width]");
    }
    const int64_t vocabulary = inputs[1].shape[0], width = inputs[1].shape[1];
    status = CheckType("token", inputs[1], WeightType(Element::kActivation, {vocabulary, width}));
    const int64_t context = inputs[0].shape[0];
    if (status.ok() && !attributes.tokens_only) {
      status = CheckPositions("position", inputs[2], Element::kActivation, context, width);
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{ActivationType(inputs[0].shape.Plus({width}))};
  }
  Cost CostOfCall(const EmbeddingAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kEmbeddingFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const EmbeddingAttributes& attributes, GradientWriter& writer) const override {
    std::vector<int> tables = {1};
    if (!attributes.tokens_only) tables.push_back(2);
    const auto wanted = [&](int table) { return writer.Wants(table); };
    if (std::none_of(tables.begin(), tables.end(), wanted)) return;
    writer.EmitAdding("embedding_weight_gradient", ToAttributes(attributes),
                      {writer.input(0), writer.OutputGradient(0)}, tables);
  }
};

class EmbeddingWeightGradient final : public OperationOf<EmbeddingAttributes> {
 public:
  std::string_view name() const override { return "embedding_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const EmbeddingAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"ids", "dy"});
    if (status.ok()) {
      status = attributes.tokens_only ? CheckOperands(name(), adds, {"d_token"})
                                      : CheckOperands(name(), adds, {"d_token", "d_position"});
    }
    if (status.ok()) status = CheckIds(inputs[0]);
    if (status.ok()) status = CheckActivation("dy", inputs[1], 2);
    if (!status.ok()) return status;
    const int64_t context = inputs[0].shape[0], width = inputs[1].shape.back();
    status = CheckType("dy", inputs[1], ActivationType(inputs[0].shape.Plus({width})));
    const int64_t vocabulary = adds[0].shape.rank() == 2 ? adds[0].shape[0] : 0;
    if (status.ok()) {
      status = CheckType("d_token", adds[0], WeightType(Element::kFloat32, {vocabulary, width}));
    }
    if (status.ok() && !attributes.tokens_only) {
      status = CheckPositions("d_position", adds[1], Element::kFloat32, context, width);
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const EmbeddingAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kEmbeddingFlops.backward * TypeElements(types.inputs[1], samples)};
  }
};

}  // namespace

OperationList EmbeddingOperations() {
  static const Embedding embedding;
  static const EmbeddingWeightGradient gradient;
  return {&embedding, &gradient};
}

}  // namespace stagecoach
