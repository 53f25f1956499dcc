// JointOperation: a gradient of an input and one of weights in one call. So a back end reads their
// common inputs once. It stands in the joint backward alone (network/lists/join_calls.cc); no
// gradient rule writes it. Types, cost and numbers are those of its parts. A back end without a
// kernel of its own runs the parts one after the other (stage/backends/kernel_table.h). A kernel of
// its own gives their bits. So a backward has the same bits in one part and in two.
// Ownership: as any operation; it looks its parts up by name at each call.
#ifndef STAGECOACH_OPERATIONS_JOINT_H_
#define STAGECOACH_OPERATIONS_JOINT_H_

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "operations/operation.h"

namespace stagecoach {

class JointOperation final : public Operation {
 public:
  JointOperation(std::string_view name, JointParts parts) : name_(name), parts_(std::move(parts)) {}

  std::string_view name() const override { return name_; }
  const JointParts* Parts() const override { return &parts_; }
  // Checks the attributes of the input gradient.
  absl::Status CheckAttributes(const Attributes& attributes) const override;
  absl::StatusOr<std::vector<ValueType>> Types(const Attributes& attributes,
                                               std::span<const ValueType> inputs,
                                               std::span<const ValueType> adds) const override;
  Cost CostOf(const Attributes& attributes, const CallTypes& types, int64_t samples) const override;
  std::optional<Attributes> WithSum(const Attributes& attributes) const override;

 private:
  const std::string_view name_;
  const JointParts parts_;
};

// Types of the weights' part of a joint call.
CallTypes WeightPartOf(const JointParts& parts, const CallTypes& types);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_JOINT_H_
