// Updates: operations that change a parameter at the end of a step, one for each optimizer. No
// network calls them: the optimizer does (plan/job/optimizer_kinds.h), once for each parameter.
// Attributes are what is constant over a job. UpdateNumbers are what another step changes.
// Inputs: none. Outputs: none. (average_update has other operands.) Changes, in this order:
//   gradient  float32 of the parameter's shape; whatever is in it afterwards has no meaning
//   value     float32 of the parameter's shape
//   states    float32; which ones, and of which shapes, is the operation's
//   copy      activation of the parameter's shape, where products read a rounded copy of the value:
//             the new value, rounded once
// Threads: any.
#ifndef STAGECOACH_OPERATIONS_UPDATES_UPDATE_H_
#define STAGECOACH_OPERATIONS_UPDATES_UPDATE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operations/operation.h"

namespace stagecoach {

inline constexpr double kMaxWeightDecay = 1e3;

struct UpdateNumbers {
  uint64_t applied = 0;         // updates that the states have seen
  double learning_rate = 0;     // of an average: the new value's share
  double gradient_scale = 1.0;  // the update is of gradient_scale * gradient
  // The number of this update, from 1 on, for formulas.
  double t() const { return static_cast<double>(applied) + 1.0; }
};

struct UpdateState {
  std::string_view name;
  Shape shape;
};

// INVALID_ARGUMENT unless the operands are those of an update with these states.
absl::Status CheckUpdateOperands(std::string_view operation, std::span<const ValueType> inputs,
                                 std::span<const ValueType> adds,
                                 const std::vector<UpdateState>& states);

template <typename Struct>
class UpdateOf : public OperationOf<Struct> {
 private:
  // The states of a parameter of this shape.
  virtual std::vector<UpdateState> StatesOf(const Struct& attributes, const Shape& value) const = 0;
  // Nominal FLOPs for an element of the parameter.
  virtual int64_t FlopsOfElement() const = 0;

  absl::StatusOr<std::vector<ValueType>> TypesOf(const Struct& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType> adds) const final {
    const Shape value = adds.size() < 2 ? Shape() : adds[1].shape;
    const absl::Status status =
        CheckUpdateOperands(this->name(), inputs, adds, StatesOf(attributes, value));
    if (!status.ok()) return status;
    return std::vector<ValueType>{};
  }
  Cost CostOfCall(const Struct&, const CallTypes& types, int64_t) const final {
    return {.flops = FlopsOfElement() * types.adds[1].shape.elements()};
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_UPDATES_UPDATE_H_
