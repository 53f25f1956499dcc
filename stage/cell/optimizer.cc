#include "stage/cell/optimizer.h"

#include <map>
#include <utility>

#include "base/status.h"
#include "plan/optimizer_kinds.h"
#include "plan/optimizer_slots.h"
#include "stage/cell/optimizer_parts.h"

namespace stagecoach {
namespace {

// One slot for each parameter.
absl::StatusOr<std::vector<OptimizerSlot>> MakeSlots(const std::vector<Parameter*>& parameters,
                                                     const std::string& slot, float start,
                                                     Backend& backend) {
  std::vector<OptimizerSlot> slots;
  slots.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    const std::string name = SlotTensorName(slot, parameter->spec.name);
    ASSIGN_OR_RETURN(Tensor value, Annotate(MakeTensor(backend.allocator(), MemoryKind::kOptimizer,
                                                       DType::kF32, parameter->spec.shape),
                                            name));
    backend.Fill(value, start);
    slots.push_back({name, std::move(value)});
  }
  return slots;
}

using Maker = absl::StatusOr<std::unique_ptr<Optimizer>> (*)(const OptimizerSpec& spec,
                                                             OptimizerParts parts);

const std::map<std::string, Maker>& Makers() {
#define STAGECOACH_ENTRY(Name) {std::string(Name##OptimizerKind()->name()), &Make##Name},
  static const auto* const makers =
      new std::map<std::string, Maker>{STAGECOACH_OPTIMIZER_KINDS(STAGECOACH_ENTRY)};
#undef STAGECOACH_ENTRY
  return *makers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec,
                                                         std::vector<Parameter*> parameters,
                                                         Backend& backend,
                                                         const AverageSpec& average) {
  const std::vector<Parameter*> averaged =
      average.decay > 0 ? parameters : std::vector<Parameter*>();
  OptimizerParts parts{.parameters = std::move(parameters), .slots = {}, .backend = &backend};
  for (const std::string& name : OptimizerSlots(spec)) {
    const float start = OptimizerKinds().Named(spec.kind).SlotStart(spec, name);
    ASSIGN_OR_RETURN(parts.slots[name], MakeSlots(parts.parameters, name, start, backend));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                   Makers().at(spec.kind)(spec, std::move(parts)));
  if (average.decay == 0) return optimizer;
  ASSIGN_OR_RETURN(std::vector<OptimizerSlot> averages,
                   MakeSlots(averaged, kAverageSlot, 0.0f, backend));
  return MakeAveragingOptimizer(std::move(optimizer), average, averaged, std::move(averages),
                                backend);
}

}  // namespace stagecoach
