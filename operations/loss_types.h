// What losses have in common: they are the last call of a network, and its gradient begins in them.
//   inputs   as the loss says; with the attribute `gradient` also scale (float32, one number): what the
//            gradient of a sum over the mini-batch is multiplied by.
//   outputs  with `gradient` first the gradient of input 0, which may take its place; then the sums of the
//            micro-batch (float64): the loss, how many terms it has, and measures. They are computed before
//            anything is overwritten.
// Without `gradient` a loss is an evaluation. It has no gradient rule.
#ifndef STAGECOACH_OPERATIONS_LOSS_TYPES_H_
#define STAGECOACH_OPERATIONS_LOSS_TYPES_H_

#include <vector>

#include "operations/call_case.h"
#include "operations/value_type.h"

namespace stagecoach {

inline ValueType ScaleType() { return WeightType(Element::kFloat32, {}); }

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

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_LOSS_TYPES_H_
