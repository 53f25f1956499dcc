#include "operations/norms/batch_norm.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/row_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

// What the gradients read: dy, x, [weight,] mean, rstd.
absl::Status CheckChannels(const ValueType& dy, const ValueType& x, const ValueType& mean,
                           const ValueType& rstd) {
  absl::Status status = CheckActivation("dy", dy, 1);
  if (status.ok()) status = CheckType("x", x, dy);
  if (status.ok()) status = CheckType("mean", mean, RowWeightType(dy));
  if (status.ok()) status = CheckType("rstd", rstd, RowWeightType(dy));
  return status;
}

// Of x, weight, bias and what stands for `moments`.
absl::Status CheckNormalized(std::span<const ValueType> inputs,
                             std::initializer_list<const char*> others) {
  absl::Status status = CheckActivation("x", inputs[0], 1);
  size_t i = 1;
  for (const char* other : others) {
    if (status.ok()) status = CheckType(other, inputs[i++], RowWeightType(inputs[0]));
  }
  return status;
}

// Count, mean and M2 of each channel.
ValueType MomentsType(const ValueType& by_channel) {
  return WeightType(Element::kFloat64, {3, by_channel.shape.back()});
}

// In one sample, of a channel.
int64_t Places(const ValueType& x) { return x.shape.elements() / x.shape.back(); }

class BatchNorm final : public OperationOf<BatchNormAttributes> {
 public:
  std::string_view name() const override { return "batch_norm"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  EvaluationForm Evaluation(const Attributes& attributes) const override {
    const BatchNormAttributes own = Get(attributes);
    if (own.momentum == 0) return {.identity = false, .attributes = attributes};
    return {.identity = false,
            .attributes = ToAttributes(BatchNormFixedAttributes{own.epsilon}),
            .operation = "batch_norm_fixed"};
  }
  void Update(const Attributes& attributes, UpdateWriter& writer) const override {
    const double momentum = Get(attributes).momentum;
    if (momentum == 0) return;
    const ValueType& x = writer.input_type(0);
    const ValueId moments = writer.Accumulator(Element::kFloat64, MomentsType(x).shape);
    writer.EmitFold("batch_norm_fold", ToAttributes(BatchNormFoldAttributes{Places(x)}),
                    {writer.output(1), writer.output(3)}, {moments});
    writer.EmitCommit("batch_norm_commit", ToAttributes(BatchNormCommitAttributes{momentum}),
                      {moments}, {3, 4});
  }
  // One value a channel has no variance: its y would be the bias, whatever x is.
  int64_t LeastSamples(const Attributes&, const CallTypes& types) const override {
    return Places(types.inputs[0]) == 1 ? 2 : 1;
  }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, BatchNormAttributes attributes, Shape shape) {
      const int64_t channels = shape.back();
      CallCase made{.name = std::move(name),
                    .attributes = ToAttributes(attributes),
                    .inputs = {Samples(std::move(shape), Fill::kShifted),
                               Float32Weights({channels}), Float32Weights({channels})},
                    .samples = 3};
      if (attributes.momentum > 0) {
        made.inputs.push_back(States({channels}));
        made.inputs.push_back(States({channels}, Fill::kPositive));
      }
      return made;
    };
    return {of("labels", {.epsilon = 1e-3}, {5}), of("image", {.momentum = 0.1}, {4, 3, 7}),
            of("wide", {.momentum = 0.75}, {9, 7, 66})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const BatchNormAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status;
    if (attributes.momentum > 0) {
      status = CheckOperands(name(), inputs, {"x", "weight", "bias", "mean", "variance"});
      if (status.ok()) status = CheckNormalized(inputs, {"weight", "bias", "mean", "variance"});
    } else {
      status = CheckOperands(name(), inputs, {"x", "weight", "bias"});
      if (status.ok()) status = CheckNormalized(inputs, {"weight", "bias"});
    }
    if (!status.ok()) return status;
    const ValueType channels = RowWeightType(inputs[0]);
    return std::vector<ValueType>{inputs[0], channels, channels, channels};
  }
  Cost CostOfCall(const BatchNormAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kBatchNormFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const BatchNormAttributes&, GradientWriter& writer) const override {
    const ValueId dy = writer.OutputGradient(0), x = writer.input(0), mean = writer.output(1),
                  rstd = writer.output(2);
    const std::vector<ValueId> sums = writer.Emit("batch_norm_sums", {}, {dy, x, mean, rstd});
    if (writer.Wants(0)) {
      writer.Contribute(0, writer.Emit("batch_norm_input_gradient", {},
                                       {dy, x, writer.input(1), mean, rstd, sums[0], sums[1]})[0]);
    }
    if (writer.Wants(1) || writer.Wants(2)) writer.EmitAdding("add_to", {}, sums, {1, 2});
  }
};

class BatchNormFixed final : public OperationOf<BatchNormFixedAttributes> {
 public:
  std::string_view name() const override { return "batch_norm_fixed"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, double epsilon, Shape shape) {
      const int64_t channels = shape.back();
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(BatchNormFixedAttributes{epsilon}),
                      .inputs = {Samples(std::move(shape), Fill::kShifted),
                                 Float32Weights({channels}), Float32Weights({channels}),
                                 States({channels}), States({channels}, Fill::kPositive)},
                      .samples = 3,
                      .differentiable = false};
    };
    return {of("labels", 1e-3, {5}), of("image", 1e-5, {4, 3, 67})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const BatchNormFixedAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status =
        CheckOperands(name(), inputs, {"x", "weight", "bias", "mean", "variance"});
    if (status.ok()) status = CheckNormalized(inputs, {"weight", "bias", "mean", "variance"});
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const BatchNormFixedAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kScaleAndShiftFlops * TypeElements(types.outputs[0], samples)};
  }
};

class BatchNormFold final : public OperationOf<BatchNormFoldAttributes> {
 public:
  std::string_view name() const override { return "batch_norm_fold"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const BatchNormFoldAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"mean", "variance"});
    if (status.ok()) status = CheckOperands(name(), adds, {"moments"});
    if (status.ok()) status = CheckType("variance", inputs[1], inputs[0]);
    if (status.ok()) status = CheckType("moments", adds[0], MomentsType(inputs[0]));
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const BatchNormFoldAttributes&, const CallTypes& types, int64_t) const override {
    return {.flops = kMomentFlops * TypeElements(types.inputs[0], 1)};
  }
};

class BatchNormCommit final : public OperationOf<BatchNormCommitAttributes> {
 public:
  std::string_view name() const override { return "batch_norm_commit"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const BatchNormCommitAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    absl::Status status = CheckOperands(name(), inputs, {"moments"});
    if (status.ok()) status = CheckOperands(name(), adds, {"running mean", "running variance"});
    if (status.ok()) status = CheckType("running variance", adds[1], adds[0]);
    if (status.ok()) status = CheckType("moments", inputs[0], MomentsType(adds[0]));
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const BatchNormCommitAttributes&, const CallTypes& types,
                  int64_t) const override {
    return {.flops = kMomentFlops * TypeElements(types.adds[0], 1)};
  }
};

class BatchNormSums final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "batch_norm_sums"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy", "x", "mean", "rstd"});
    if (status.ok()) status = CheckChannels(inputs[0], inputs[1], inputs[2], inputs[3]);
    if (!status.ok()) return status;
    return std::vector<ValueType>(2, RowWeightType(inputs[0]));
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kBatchNormFlops.backward / 2 * TypeElements(types.inputs[0], samples)};
  }
};

class BatchNormInputGradient final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "batch_norm_input_gradient"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status =
        CheckOperands(name(), inputs, {"dy", "x", "weight", "mean", "rstd", "d_weight", "d_bias"});
    if (status.ok()) status = CheckChannels(inputs[0], inputs[1], inputs[3], inputs[4]);
    if (!status.ok()) return status;
    const ValueType channels = RowWeightType(inputs[0]);
    status = CheckType("weight", inputs[2], channels);
    if (status.ok()) status = CheckType("d_weight", inputs[5], channels);
    if (status.ok()) status = CheckType("d_bias", inputs[6], channels);
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kBatchNormFlops.backward / 2 * TypeElements(types.inputs[0], samples)};
  }
};

class AddTo final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "add_to"; }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const override {
    if (inputs.empty() || inputs.size() != adds.size()) {
      return absl::InvalidArgumentError(absl::StrCat("add_to has ", inputs.size(), " operands for ",
                                                     adds.size(),
                                                     " gradients; it takes one for each"));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string operand = absl::StrCat("operand ", i);
      const ValueType once = WeightType(Element::kFloat32, inputs[i].shape);
      absl::Status status = CheckType(operand, inputs[i], once);
      if (status.ok()) status = CheckType(absl::StrCat("gradient ", i), adds[i], inputs[i]);
      if (!status.ok()) return status;
    }
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t) const override {
    int64_t elements = 0;
    for (const ValueType& type : types.inputs) elements += TypeElements(type, 1);
    return {.flops = kAddFlops.forward * elements};
  }
};

}  // namespace

OperationList BatchNormOperations() {
  static const BatchNorm norm;
  static const BatchNormSums sums;
  static const BatchNormInputGradient input;
  static const BatchNormFixed fixed;
  static const BatchNormFold fold;
  static const BatchNormCommit commit;
  static const AddTo add_to;
  return {&norm, &sums, &input, &fixed, &fold, &commit, &add_to};
}

}  // namespace stagecoach
