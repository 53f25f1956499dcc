// OptimizerParts: the parts of which each file in stage/cell/optimizers makes an Optimizer, and
// helpers of these files.
// Ownership: borrows parameters and back end; owns the slots.
#ifndef STAGECOACH_STAGE_CELL_OPTIMIZER_PARTS_H_
#define STAGECOACH_STAGE_CELL_OPTIMIZER_PARTS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stage/cell/optimizer.h"

namespace stagecoach {

struct OptimizerParts {
  std::vector<Parameter*> parameters;
  // By name, those of OptimizerSlots: one tensor for each parameter, with its initial values.
  std::map<std::string, std::vector<OptimizerSlot>> slots;
  Backend* backend = nullptr;
};

inline float DecayOf(double weight_decay, const Parameter& parameter) {
  return parameter.spec.decay ? static_cast<float>(weight_decay) : 0.0f;
}

// The copy that operations read; invalid if they read the value itself.
inline Tensor ComputeCopy(const Parameter& parameter) {
  return parameter.compute.buffer() == parameter.value.buffer() ? Tensor() : parameter.compute;
}

// Updates by `inner`, then averages `values`, with one slot for each.
std::unique_ptr<Optimizer> MakeAveragingOptimizer(std::unique_ptr<Optimizer> inner,
                                                  const AverageSpec& average, Tensors values,
                                                  std::vector<OptimizerSlot> slots,
                                                  Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_OPTIMIZER_PARTS_H_
