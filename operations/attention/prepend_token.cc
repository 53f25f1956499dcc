#include "operations/attention/prepend_token.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/images/pad.h"
#include "operations/reshape.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

// Of sequences of rows: [rows, width].
absl::Status CheckSequence(std::string_view operand, const ValueType& sequence, int64_t least) {
  const absl::Status status = CheckActivation(operand, sequence, 2);
  if (!status.ok()) return status;
  if (sequence.shape.rank() == 2 && sequence.shape[0] >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(operand), " is ", FormatType(sequence),
                                                 "; must be [rows, width] with ", least,
                                                 " rows or more"));
}

class PrependToken final : public OperationOf<PrependTokenAttributes> {
 public:
  std::string_view name() const override { return "prepend_token"; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, int64_t samples, int64_t rows, int64_t width) {
      return CallCase{
          .name = std::move(name),
          .inputs = {Samples({rows, width}), Weights({width}), Weights({rows + 1, width})},
          .samples = samples,
          .tolerance = 0};
    };
    return {of("one_row", 1, 1, 5), of("odd", 3, 7, 17), of("wide", 2, 49, 131)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const PrependTokenAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x", "token", "position"});
    if (status.ok()) status = CheckSequence("x", inputs[0], 1);
    if (!status.ok()) return status;
    const int64_t rows = inputs[0].shape[0] + 1, width = inputs[0].shape[1];
    if (rows > kMaxExtent) {
      return absl::InvalidArgumentError(absl::StrCat(
          "x is ", FormatType(inputs[0]), "; must have less than ", kMaxExtent, " rows"));
    }
    status = CheckType("token", inputs[1], WeightType(Element::kActivation, {width}));
    if (status.ok()) {
      status = CheckType("position", inputs[2], WeightType(Element::kActivation, {rows, width}));
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{ActivationType({rows, width})};
  }
  Cost CostOfCall(const PrependTokenAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kEmbeddingFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const PrependTokenAttributes&, GradientWriter& writer) const override {
    const ValueId dy = writer.OutputGradient(0);
    if (writer.Wants(0)) {
      // As images of one column.
      const int64_t rows = writer.input_type(0).shape[0], width = writer.input_type(0).shape[1];
      const auto shaped = [&writer](ValueId id, std::vector<int64_t> shape) {
        const ReshapeAttributes attributes{std::move(shape)};
        return writer.Emit("reshape", ToAttributes(attributes), {id})[0];
      };
      const ValueId rest = writer.Emit("pad", ToAttributes(PadAttributes{.top = -1}),
                                       {shaped(dy, {rows + 1, 1, width})})[0];
      writer.Contribute(0, shaped(rest, {rows, width}));
    }
    if (writer.Wants(1) || writer.Wants(2)) {
      writer.EmitAdding("prepend_token_weight_gradient", {}, {dy}, {1, 2});
    }
  }
};

class PrependTokenWeightGradient final : public OperationOf<PrependTokenAttributes> {
 public:
  std::string_view name() const override { return "prepend_token_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const PrependTokenAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy"});
    if (status.ok()) status = CheckOperands(name(), adds, {"d_token", "d_position"});
    if (status.ok()) status = CheckSequence("dy", inputs[0], 2);
    if (!status.ok()) return status;
    const Shape& all = inputs[0].shape;
    status = CheckType("d_token", adds[0], WeightType(Element::kFloat32, {all[1]}));
    if (status.ok()) status = CheckType("d_position", adds[1], WeightType(Element::kFloat32, all));
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const PrependTokenAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kEmbeddingFlops.backward * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList PrependTokenOperations() {
  static const PrependToken prepend;
  static const PrependTokenWeightGradient gradient;
  return {&prepend, &gradient};
}

}  // namespace stagecoach
