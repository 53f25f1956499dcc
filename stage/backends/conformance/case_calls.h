// CaseCalls: the calls of an operation's case, forward and backward (operations/call_case.h).
// Ownership: plain values.
// Errors:    none; cases were checked by the tests of operations/.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_CASE_CALLS_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_CASE_CALLS_H_

#include <string>
#include <vector>

#include "operations/case_testing.h"
#include "stage/backends/backend.h"

namespace stagecoach::conformance {

struct CaseCalls {
  OperationCase of;
  std::vector<ValueType> types;  // by value
  std::vector<ValueId> operands, outputs;
  // Invalid where there is none. An operand's that is a parameter is added to.
  std::vector<ValueId> output_gradients, operand_gradients;
  // The backward: input part, weight part, and what changes the states.
  std::vector<Call> forward, backward;
  // Calls of the joint backward that stand for two of those each, and add once more what they add.
  std::vector<Call> joint;

  const ValueType& type(ValueId id) const { return types[static_cast<size_t>(id.value)]; }
  CallTypes TypesOf(const Call& call) const;
  std::vector<Call> All() const;  // without the joint ones
};
CaseCalls CallsOfCase(const OperationCase& of);

// The first operation that this back end has no kernel for; empty if it has all.
std::string MissingKernel(Backend& backend, const CaseCalls& calls);
// Of all cases, each once.
std::vector<std::string> MissingKernels(Backend& backend);

// What a value has before the first call: an operand as the case says, a gradient normal numbers.
std::vector<float> FillOf(const CaseCalls& calls, ValueId id);
// Normal numbers; `stream` tells one use from another.
std::vector<float> FillNormal(int64_t count, uint32_t stream);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_CASE_CALLS_H_
