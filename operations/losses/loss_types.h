// Losses: a loss is the last call of a network, and its gradient begins in it.
//   inputs   as the loss says. With the attribute `weighted` also weights (float32). Each term of
//            the sums, and its gradient, is multiplied by the weight of its target. A term of
//            weight 0 counts for nothing, whatever it is. With the attribute `gradient` also scale
//            (float32, one number). The gradient of a sum over the mini-batch is multiplied by it.
//   outputs  with `gradient` first the gradient of input 0, which may take its place. Then the sums
//            of the micro-batch (float64): the loss; the number of its terms, or their weight;
//            measures. Counts class by class come behind those. The sums are computed before
//            anything is overwritten.
// Without `gradient` a loss is an evaluation. It has no gradient rule.
#ifndef STAGECOACH_OPERATIONS_LOSSES_LOSS_TYPES_H_
#define STAGECOACH_OPERATIONS_LOSSES_LOSS_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "operations/call_case.h"
#include "operations/value_type.h"

namespace stagecoach {

// Columns of a loss's counts for each class: guessed right, targets, guesses.
inline constexpr int64_t kClassCounts = 3;

inline ValueType ScaleType() { return WeightType(Element::kFloat32, {}); }

// Weights from a data source: a number a sample.
inline ValueType SampleWeightType() { return {Element::kFloat32, Leading::kSamples, {}}; }
// Weights for a loss: one for each id, or one a sample if targets are numbers.
ValueType LossWeightsType(const ValueType& targets);

// Bounds of a weight beside 0. So sums of them and their inverses stay far inside of float32.
inline constexpr double kLeastWeight = 1e-9, kMostWeight = 1e9;
inline bool IsLossWeight(float weight) {
  return weight == 0 ||
         (weight >= static_cast<float>(kLeastWeight) && weight <= static_cast<float>(kMostWeight));
}

// Optional operands of a loss, beside its own two.
struct LossForm {
  bool weighted = false, gradient = false;
};
// Place of the scale among the inputs.
inline size_t ScalePlace(const LossForm& form) { return form.weighted ? 3 : 2; }

// Checks the number of operands; `output` and `targets` are its own two.
absl::Status CheckLossOperands(std::string_view operation, std::span<const ValueType> inputs,
                               std::string_view output, std::string_view targets,
                               const LossForm& form);
// Checks the types of the optional operands.
absl::Status CheckLossTypes(std::span<const ValueType> inputs, const LossForm& form);

inline std::vector<ValueType> LossOutputs(bool gradient, const ValueType& input, int64_t sums) {
  const ValueType table = WeightType(Element::kFloat64, {sums});
  return gradient ? std::vector<ValueType>{input, table} : std::vector<ValueType>{table};
}

// A case with a scale and without.
inline std::vector<CallCase> LossCases(const CallCase& evaluation, Attributes with_gradient) {
  CallCase gradient = evaluation;
  gradient.name += "_gradient";
  gradient.attributes = std::move(with_gradient);
  gradient.inputs.push_back({ScaleType(), Fill::kPositive, 0});
  return {evaluation, gradient};
}

// Weights for the targets of a case.
inline CaseOperand LossWeights(const ValueType& targets) {
  return {LossWeightsType(targets), Fill::kSomeZero, 0};
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_LOSSES_LOSS_TYPES_H_
