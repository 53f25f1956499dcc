// What losses have in common: they are the last call of a network, and its gradient begins in them.
//   inputs   as the loss says; with the attribute `weighted` also weights (float32): each term of the sums, and its
//            gradient, is multiplied by that of its target, and one of weight 0 counts for nothing, whatever it is;
//            with the attribute `gradient` also scale (float32, one number): what the gradient of a sum over the
//            mini-batch is multiplied by.
//   outputs  with `gradient` first the gradient of input 0, which may take its place; then the sums of the
//            micro-batch (float64): the loss, how many terms it has, or what they weigh, measures, and behind those
//            what is counted class by class. They are computed before anything is overwritten.
// Without `gradient` a loss is an evaluation. It has no gradient rule.
#ifndef STAGECOACH_OPERATIONS_LOSS_TYPES_H_
#define STAGECOACH_OPERATIONS_LOSS_TYPES_H_

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

// Where a loss counts class by class: of each class those guessed right, targets, guesses.
inline constexpr int64_t kClassCounts = 3;

inline ValueType ScaleType() { return WeightType(Element::kFloat32, {}); }

// What a data source gives: a number a sample.
inline ValueType SampleWeightType() { return {Element::kFloat32, Leading::kSamples, {}}; }
// What a loss takes: one for each id, or, where targets are numbers, one a sample.
ValueType LossWeightsType(const ValueType& targets);

// What a weight may be beside 0: so sums of them and their inverses stay far inside of float32.
inline constexpr double kLeastWeight = 1e-9, kMostWeight = 1e9;
inline bool IsLossWeight(float weight) {
  return weight == 0 ||
         (weight >= static_cast<float>(kLeastWeight) && weight <= static_cast<float>(kMostWeight));
}

// Which operands a loss takes beside its own two.
struct LossForm {
  bool weighted = false, gradient = false;
};
// The input with the scale.
inline size_t ScalePlace(const LossForm& form) { return form.weighted ? 3 : 2; }

// How many operands there are; `output` and `targets` are its own two.
absl::Status CheckLossOperands(std::string_view operation, std::span<const ValueType> inputs,
                               std::string_view output, std::string_view targets,
                               const LossForm& form);
// Types of those beside its own.
absl::Status CheckLossTypes(std::span<const ValueType> inputs, const LossForm& form);

inline std::vector<ValueType> LossOutputs(bool gradient, const ValueType& input, int64_t sums) {
  const ValueType table = WeightType(Element::kFloat64, {sums});
  return gradient ? std::vector<ValueType>{input, table} : std::vector<ValueType>{table};
}

// A case with its scale and without.
inline std::vector<CallCase> LossCases(const CallCase& evaluation, Attributes with_gradient) {
  CallCase gradient = evaluation;
  gradient.name += "_gradient";
  gradient.attributes = std::move(with_gradient);
  gradient.inputs.push_back({ScaleType(), Fill::kPositive, 0});
  return {evaluation, gradient};
}

// Behind the targets of a case.
inline CaseOperand LossWeights(const ValueType& targets) {
  return {LossWeightsType(targets), Fill::kSomeZero, 0};
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_LOSS_TYPES_H_
