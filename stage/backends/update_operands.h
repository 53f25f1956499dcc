// UpdateOperands: what a call of an update changes, by name (operations/updates/update.h).
#ifndef STAGECOACH_STAGE_BACKENDS_UPDATE_OPERANDS_H_
#define STAGECOACH_STAGE_BACKENDS_UPDATE_OPERANDS_H_

#include "stage/backends/kernel.h"

namespace stagecoach {

struct UpdateOperands {
  explicit UpdateOperands(const KernelArguments& a)
      : gradient(a.adds[0]), value(a.adds[1]), adds(a.adds) {
    const Tensor& last = adds[adds.size() - 1];
    states = adds.size() - 2;
    if (last.dtype() == DType::kF32) return;
    --states;
    copy = last;
  }
  const Tensor& state(size_t i) const { return adds[2 + i]; }
  Tensor state_or_none(size_t i) const { return i < states ? state(i) : Tensor(); }

  const Tensor &gradient, &value;
  const Operands& adds;
  size_t states = 0;
  Tensor copy;  // invalid: products read the value itself
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_UPDATE_OPERANDS_H_
