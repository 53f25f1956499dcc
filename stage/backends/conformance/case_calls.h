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
  // Gradients, invalid where there is none. A parameter's gradient is added to.
  std::vector<ValueId> output_gradients, operand_gradients;
  // `backward`: input part, weight part, and the calls that change the states.
  std::vector<Call> forward, backward;
  // Calls of the joint backward. Each stands for two calls of `backward` and adds the same again.
  std::vector<Call> joint;

  const ValueType& type(ValueId id) const { return types[static_cast<size_t>(id.value)]; }
  CallTypes TypesOf(const Call& call) const;
  std::vector<Call> All() const;  // without the joint ones
};
CaseCalls CallsOfCase(const OperationCase& of);

// The first operation that this back end has no kernel for; empty if it has all.
std::string MissingKernel(Backend& backend, const CaseCalls& calls);
// The same for all cases: each operation once.
std::vector<std::string> MissingKernels(Backend& backend);

// Initial values, before the first call: an operand's as the case says, a gradient's normal.
std::vector<float> FillOf(const CaseCalls& calls, ValueId id);
// Normal numbers; `stream` tells one use from another.
std::vector<float> FillNormal(int64_t count, uint32_t stream);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_CASE_CALLS_H_
