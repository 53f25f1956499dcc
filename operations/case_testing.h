// For tests: the cases of all operations.
#ifndef STAGECOACH_OPERATIONS_CASE_TESTING_H_
#define STAGECOACH_OPERATIONS_CASE_TESTING_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "operations/catalogue.h"

namespace stagecoach {

struct OperationCase {
  const Operation* operation;
  CallCase call;
  std::string name() const { return std::string(operation->name()) + "_" + call.name; }
};

inline void PrintTo(const OperationCase& of, std::ostream* out) { *out << of.name(); }

inline std::vector<OperationCase> AllCases() {
  std::vector<OperationCase> all;
  for (const Operation* operation : AllOperations()) {
    for (CallCase& call : operation->Cases()) all.push_back({operation, std::move(call)});
  }
  return all;
}

inline std::vector<ValueType> TypesOf(const std::vector<CaseOperand>& operands) {
  std::vector<ValueType> types;
  for (const CaseOperand& operand : operands) types.push_back(operand.type);
  return types;
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CASE_TESTING_H_
