#include "stage/cell/optimizer.h"

#include <utility>

#include "base/errors/status.h"
#include "plan/job/optimizer_kinds.h"
#include "plan/job/optimizer_slots.h"
#include "stage/cell/optimizer_parts.h"

namespace stagecoach {

// Each has a file in stage/cell/optimizers, which defines AdamWOptimizer and so on.
using OptimizerMaker = absl::StatusOr<std::unique_ptr<Optimizer>>(const OptimizerSpec& spec,
                                                                  OptimizerParts parts);
STAGECOACH_LISTED(OptimizerMaker, Optimizer, STAGECOACH_OPTIMIZERS)

namespace {

absl::StatusOr<OptimizerSlot> MakeSlot(const std::string& slot, const std::string& of,
                                       const Shape& shape, float start, Backend& backend) {
  const std::string name = SlotTensorName(slot, of);
  ASSIGN_OR_RETURN(
      Tensor value,
      Annotate(MakeTensor(backend.allocator(), MemoryKind::kOptimizer, DType::kF32, shape), name));
  backend.Fill(value, start);
  return OptimizerSlot{name, std::move(value)};
}

// One slot for each parameter.
absl::StatusOr<std::vector<OptimizerSlot>> MakeSlots(const std::vector<Parameter*>& parameters,
                                                     const std::string& slot, float start,
                                                     Backend& backend) {
  std::vector<OptimizerSlot> slots;
  slots.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    ASSIGN_OR_RETURN(OptimizerSlot made,
                     MakeSlot(slot, parameter->spec.name, parameter->spec.shape, start, backend));
    slots.push_back(std::move(made));
  }
  return slots;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec,
                                                         std::vector<Parameter*> parameters,
                                                         Backend& backend,
                                                         const AverageSpec& average,
                                                         const std::vector<LayerState*>& states) {
  const std::vector<Parameter*> averaged =
      average.decay > 0 ? parameters : std::vector<Parameter*>();
  OptimizerParts parts{.parameters = std::move(parameters), .slots = {}, .backend = &backend};
  for (const std::string& name : OptimizerSlots(spec)) {
    const float start = OptimizerKinds().Named(spec.kind).SlotStart(spec, name);
    ASSIGN_OR_RETURN(parts.slots[name], MakeSlots(parts.parameters, name, start, backend));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                   PartOf(OptimizerKinds().Named(spec.kind), kListedOptimizerKind,
                          kListedOptimizer)(spec, std::move(parts)));
  if (average.decay == 0) return optimizer;
  ASSIGN_OR_RETURN(std::vector<OptimizerSlot> averages,
                   MakeSlots(averaged, kAverageSlot, 0.0f, backend));
  Tensors values;
  for (const Parameter* parameter : averaged) values.push_back(parameter->value);
  for (const LayerState* state : states) {
    ASSIGN_OR_RETURN(OptimizerSlot made,
                     MakeSlot(kAverageSlot, state->spec.name, state->spec.shape, 0.0f, backend));
    averages.push_back(std::move(made));
    values.push_back(state->value);
  }
  return MakeAveragingOptimizer(std::move(optimizer), average, std::move(values),
                                std::move(averages), backend);
}

}  // namespace stagecoach
