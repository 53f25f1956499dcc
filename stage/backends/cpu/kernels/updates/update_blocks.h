// For kernels of updates: blocks of a parameter, which depend on its length alone, one pass over
// memory each.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_UPDATES_UPDATE_BLOCKS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_UPDATES_UPDATE_BLOCKS_H_

#include <cstdint>

#include "base/numbers/bfloat16.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/update_operands.h"

namespace stagecoach::cpu {

// The operands of an update as kernels read them: null where there is none.
struct UpdateArrays {
  explicit UpdateArrays(const KernelArguments& a) : UpdateArrays(UpdateOperands(a)) {}

  int64_t elements;
  float *value, *gradient;
  float *first = nullptr, *second = nullptr;  // states
  Bfloat16* rounded = nullptr;                // the copy

 private:
  // The values are others behind this update.
  explicit UpdateArrays(const UpdateOperands& of)
      : elements(of.value.elements()),
        value(of.value.data<float>()),
        gradient(of.gradient.data<float>()) {
    of.value.buffer()->Rewritten();
    if (of.states > 0) first = of.state(0).data<float>();
    if (of.states > 1) second = of.state(1).data<float>();
    if (!of.copy.valid()) return;
    of.copy.buffer()->Rewritten();
    rounded = of.copy.data<Bfloat16>();
  }
};

template <typename T>
T* At(T* data, int64_t first) {
  return data == nullptr ? nullptr : data + first;
}

inline double SumInOrder(const double* partial, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += partial[i];
  return sum;
}

inline int64_t ElementBlocks(int64_t elements) {
  return (elements + kElementBlock - 1) / kElementBlock;
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_UPDATES_UPDATE_BLOCKS_H_
