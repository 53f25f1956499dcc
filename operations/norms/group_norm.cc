#include "operations/norms/group_norm.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/row_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

// A float32 number for each of `extent` in a sample.
ValueType OfSample(int64_t extent) { return {Element::kFloat32, Leading::kSamples, {extent}}; }

// The groups are those of mean and rstd.
absl::Status CheckStatistics(const ValueType& dy, const ValueType& mean, const ValueType& rstd) {
  if (mean.shape.rank() != 1 || mean.shape.back() < 1 || dy.shape.back() % mean.shape.back() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("mean: ", FormatType(mean), "; one number a group, whose number divides the ",
                     dy.shape.back(), " channels"));
  }
  absl::Status status = CheckType("mean", mean, OfSample(mean.shape.back()));
  if (status.ok()) status = CheckType("rstd", rstd, mean);
  return status;
}

class GroupNorm final : public OperationOf<GroupNormAttributes> {
 public:
  std::string_view name() const override { return "group_norm"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, GroupNormAttributes attributes, Shape shape) {
      const int64_t channels = shape.back();
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples(std::move(shape), Fill::kShifted),
                                 Float32Weights({channels}), Float32Weights({channels})},
                      .samples = 3};
    };
    return {of("vector", {.groups = 2, .epsilon = 1e-3}, {6}),
            of("image", {.groups = 3}, {4, 3, 6}), of("one_group", {.groups = 1}, {9, 7, 70}),
            of("narrow_groups", {.groups = 35}, {3, 5, 70}),
            of("many_places", {.groups = 2}, {13, 11, 10})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const GroupNormAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x", "weight", "bias"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 1);
    if (!status.ok()) return status;
    const ValueType channels = RowWeightType(inputs[0]);
    status = CheckType("weight", inputs[1], channels);
    if (status.ok()) status = CheckType("bias", inputs[2], channels);
    if (!status.ok()) return status;
    if (inputs[0].shape.back() % attributes.groups != 0) {
      return absl::InvalidArgumentError(absl::StrCat("groups: ", attributes.groups,
                                                     "; must divide the ", inputs[0].shape.back(),
                                                     " channels"));
    }
    const ValueType statistics = OfSample(attributes.groups);
    return std::vector<ValueType>{inputs[0], statistics, statistics};
  }
  Cost CostOfCall(const GroupNormAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kGroupNormFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const GroupNormAttributes&, GradientWriter& writer) const override {
    const ValueId dy = writer.OutputGradient(0), x = writer.input(0), mean = writer.output(1),
                  rstd = writer.output(2);
    const std::vector<ValueId> sums = writer.Emit("group_norm_sums", {}, {dy, x, mean, rstd});
    if (writer.Wants(0)) {
      writer.Contribute(0, writer.Emit("group_norm_input_gradient", {},
                                       {dy, x, writer.input(1), mean, rstd, sums[0], sums[1]})[0]);
    }
    if (writer.Wants(1) || writer.Wants(2)) {
      writer.EmitAdding("group_norm_weight_gradient", {}, sums, {1, 2});
    }
  }
};

class GroupNormSums final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "group_norm_sums"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "x", "mean", "rstd"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 1);
    if (status.ok()) status = CheckType("x", inputs[1], inputs[0]);
    if (status.ok()) status = CheckStatistics(inputs[0], inputs[2], inputs[3]);
    if (!status.ok()) return status;
    const ValueType sums = OfSample(inputs[0].shape.back());
    return std::vector<ValueType>{sums, sums};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kGroupNormFlops.backward / 2 * TypeElements(types.inputs[0], samples)};
  }
};

class GroupNormInputGradient final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "group_norm_input_gradient"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status =
        CheckOperands(name(), inputs, {"dy", "x", "weight", "mean", "rstd", "d_weight", "d_bias"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 1);
    if (status.ok()) status = CheckType("x", inputs[1], inputs[0]);
    if (status.ok()) status = CheckType("weight", inputs[2], RowWeightType(inputs[0]));
    if (status.ok()) status = CheckStatistics(inputs[0], inputs[3], inputs[4]);
    if (!status.ok()) return status;
    const ValueType sums = OfSample(inputs[0].shape.back());
    status = CheckType("d_weight", inputs[5], sums);
    if (status.ok()) status = CheckType("d_bias", inputs[6], sums);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kGroupNormFlops.backward / 2 * TypeElements(types.outputs[0], samples)};
  }
};

class GroupNormWeightGradient final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "group_norm_weight_gradient"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"d_weight", "d_bias"});
    if (status.ok()) status = CheckOperands(name(), adds, {"d_weight", "d_bias"});
    if (!status.ok()) return status;
    if (inputs[0].shape.rank() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("d_weight: ", FormatType(inputs[0]), "; one number a channel"));
    }
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const char* const operand = i == 0 ? "d_weight" : "d_bias";
      status = CheckType(operand, inputs[i], OfSample(inputs[0].shape.back()));
      if (status.ok()) status = CheckType(operand, adds[i], RowWeightType(inputs[0]));
      if (!status.ok()) return status;
    }
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = 2 * kAddFlops.forward * TypeElements(types.inputs[0], samples)};
  }
};

}  // namespace

OperationList GroupNormOperations() {
  static const GroupNorm norm;
  static const GroupNormSums sums;
  static const GroupNormInputGradient input;
  static const GroupNormWeightGradient weight;
  return {&norm, &sums, &input, &weight};
}

}  // namespace stagecoach
