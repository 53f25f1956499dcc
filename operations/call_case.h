// CallCase: a call that an operation names for its tests, odd in shape. Cases are tested for types,
// refusals and costs (operations/cases_test.cc), and for gradient rules
// (network/lists/cases_test.cc). They also serve finite differences, and compare every back end
// with the reference (stage/backends/conformance).
// Ownership: plain values.
// Units and shapes: types as in Call; an input that exists once for all samples is a parameter or a
//            state.
#ifndef STAGECOACH_OPERATIONS_CALL_CASE_H_
#define STAGECOACH_OPERATIONS_CALL_CASE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "operations/attributes.h"
#include "operations/value_type.h"

namespace stagecoach {

enum class Fill {
  kNormal,    // standard normal
  kShifted,   // 4 + 1.5 * normal: a careless variance cancels
  kPositive,  // at least 0.5
  kSomeZero,  // as kPositive, every third 0
  kDistinct,  // in random order, 0.03 apart, at least half of that from 0
  kIds,       // from 0 to below `below`
  kAnyIds,    // from -2 to below `below`
  kPlaces,    // from -1 to `below`, all different
  kTied,      // -1, 0 or 1
  kDiverged,  // standard normal, every fifth not a number
};

// Twice the error of one rounding to bfloat16.
inline constexpr double kRoundedOnce = 1.0 / 256;

struct CaseOperand {
  ValueType type;
  Fill fill = Fill::kNormal;
  int64_t below = 0;
  bool state = false;  // exists once, and is no parameter
};

struct CallCase {
  std::string name;  // letters, digits and underscores; unique in the operation
  Attributes attributes;
  std::vector<CaseOperand> inputs;
  std::vector<CaseOperand> adds = {};  // only of a case that is not differentiable
  int64_t samples = 2;
  std::vector<int> outputs = {0};  // outputs that a layer would hand on: their gradients arrive
  bool differentiable = true;
  // Tolerance of a back end beside the reference, of outputs in float32 and in bfloat16. It is
  // relative to the larger of an element and the root mean square of its output. 0: the reference's
  // bits.
  double tolerance = 2e-5, bfloat16_tolerance = kRoundedOnce;
};

// Operands of cases.
inline CaseOperand Samples(Shape shape, Fill fill = Fill::kNormal) {
  return {ActivationType(std::move(shape)), fill, 0};
}
inline CaseOperand Statistics(Shape shape, Fill fill = Fill::kPositive) {
  return {{Element::kFloat32, Leading::kSamples, std::move(shape)}, fill, 0};
}
inline CaseOperand IdsBelow(int64_t below, Shape shape) {
  return {{Element::kIds, Leading::kSamples, std::move(shape)}, Fill::kIds, below};
}
inline CaseOperand Weights(Shape shape) {
  return {WeightType(Element::kActivation, std::move(shape)), Fill::kNormal, 0};
}
inline CaseOperand Float32Weights(Shape shape, Fill fill = Fill::kNormal) {
  return {WeightType(Element::kFloat32, std::move(shape)), fill, 0};
}

inline CaseOperand States(Shape shape, Fill fill = Fill::kNormal) {
  return {WeightType(Element::kFloat32, std::move(shape)), fill, 0, true};
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CALL_CASE_H_
