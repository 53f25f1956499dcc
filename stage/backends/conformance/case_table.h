// CaseTable: the values of a case as tensors on a back end, and its calls run on them.
// Ownership: borrows bench and calls, which must outlive it.
// Errors:    a call without a kernel is a CHECK: ask MissingKernel before.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_CASE_TABLE_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_CASE_TABLE_H_

#include <vector>

#include "stage/backends/conformance/case_calls.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {

class CaseTable {
 public:
  CaseTable(Bench& bench, const CaseCalls& calls)
      : bench_(bench), calls_(calls), table_(calls.types.size()) {}

  // A tensor with these values in the place of `id`.
  void Set(ValueId id, const std::vector<float>& values) {
    table_[static_cast<size_t>(id.value)] = Make(calls_.type(id), values);
  }
  std::vector<float> Values(ValueId id) { return Read(at(id)); }
  const Tensor& at(ValueId id) const { return table_[static_cast<size_t>(id.value)]; }
  Tensors at(const std::vector<ValueId>& ids) const;

  // Sets operands, gradients of outputs, and every tensor that a call adds to.
  void SetGiven();
  // The call with fresh outputs, which take their places in the table.
  void Run(const Call& call);
  // Rounds the call's outputs as a later call reads them: where a bfloat16 tensor would be.
  void RoundOutputs(const Call& call);

  // Runs a call that is not of the case, or in other memory. Outputs are fresh, except output 0 if
  // `output` is a tensor. The call adds to tensors of the table.
  Tensors RunOn(const Call& call, const CallTypes& types, const Tensors& inputs, Tensor output);
  Tensor Make(const ValueType& type, const std::vector<float>& values);
  std::vector<float> Read(const Tensor& tensor);

 private:
  Tensors RunKernel(const Call& call, const CallTypes& types, Tensors inputs, Tensors outputs,
                    Tensors adds);
  Tensor Blank(const ValueType& type);

  Bench& bench_;
  const CaseCalls& calls_;
  Tensors table_;
};

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_CASE_TABLE_H_
