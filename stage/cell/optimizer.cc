#include "stage/cell/optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/errors/status.h"
#include "plan/job/optimizer_kinds.h"
#include "plan/job/optimizer_slots.h"
#include "stage/backends/update_calls.h"
#include "stage/cell/averaging_optimizer.h"

namespace stagecoach {
namespace {

absl::StatusOr<OptimizerSlot> MakeSlot(const OptimizerState& state, const std::string& of,
                                       Backend& backend) {
  const std::string name = SlotTensorName(state.slot, of);
  ASSIGN_OR_RETURN(Tensor value, Annotate(MakeTensor(backend.allocator(), MemoryKind::kOptimizer,
                                                     DType::kF32, state.shape),
                                          name));
  backend.Fill(value, state.start);
  return OptimizerSlot{name, std::move(value)};
}

// An update of every parameter, by the operation that the optimizer's kind names.
class UpdatingOptimizer final : public Optimizer {
 public:
  UpdatingOptimizer(PreparedUpdates calls, std::vector<OptimizerSlot> slots)
      : calls_(std::move(calls)), slots_(std::move(slots)) {}

  void Apply(uint64_t applied, double learning_rate, double gradient_scale) override {
    calls_.Run(
        {.applied = applied, .learning_rate = learning_rate, .gradient_scale = gradient_scale});
  }
  std::vector<OptimizerSlot> slots() override { return slots_; }

 private:
  const PreparedUpdates calls_;
  const std::vector<OptimizerSlot> slots_;
};

// The copy of the value that operations read; invalid if they read the value itself.
Tensor CopyOf(const Parameter& parameter) {
  return parameter.compute.buffer() == parameter.value.buffer() ? Tensor() : parameter.compute;
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeUpdating(const OptimizerSpec& spec,
                                                        const std::vector<Parameter*>& parameters,
                                                        Backend& backend) {
  // All of one name together, in the order of the parameters.
  std::map<std::string, std::vector<std::pair<size_t, OptimizerState>>> states;
  for (size_t i = 0; i < parameters.size(); ++i) {
    for (OptimizerState& state : OptimizerStates(spec, parameters[i]->spec.shape)) {
      states[state.slot].emplace_back(i, std::move(state));
    }
  }
  const OptimizerKind& kind = OptimizerKinds().Named(spec.kind);
  std::vector<UpdateCall> calls;
  for (const Parameter* parameter : parameters) {
    Call call = kind.Update(spec, parameter->spec.decay);
    calls.push_back({.operation = std::move(call.operation),
                     .attributes = std::move(call.attributes),
                     .adds = {parameter->gradient, parameter->value}});
  }
  std::vector<OptimizerSlot> slots;
  for (const auto& [name, of_parameters] : states) {
    for (const auto& [i, state] : of_parameters) {
      ASSIGN_OR_RETURN(OptimizerSlot slot, MakeSlot(state, parameters[i]->spec.name, backend));
      calls[i].adds.push_back(slot.value);
      slots.push_back(std::move(slot));
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (Tensor copy = CopyOf(*parameters[i]); copy.valid()) calls[i].adds.push_back(copy);
  }
  ASSIGN_OR_RETURN(PreparedUpdates prepared, PreparedUpdates::Prepare(backend, std::move(calls)));
  return std::make_unique<UpdatingOptimizer>(std::move(prepared), std::move(slots));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerSpec& spec,
                                                         std::vector<Parameter*> parameters,
                                                         Backend& backend,
                                                         const AverageSpec& average,
                                                         const std::vector<LayerState*>& states) {
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer, MakeUpdating(spec, parameters, backend));
  if (average.decay == 0) return optimizer;
  std::vector<OptimizerSlot> averages;
  Tensors values;
  const auto add = [&](const std::string& name, const Shape& shape, const Tensor& value) {
    absl::StatusOr<OptimizerSlot> made = MakeSlot({kAverageSlot, shape}, name, backend);
    RETURN_IF_ERROR(made.status());
    averages.push_back(*std::move(made));
    values.push_back(value);
    return absl::OkStatus();
  };
  for (const Parameter* parameter : parameters) {
    RETURN_IF_ERROR(add(parameter->spec.name, parameter->spec.shape, parameter->value));
  }
  for (const LayerState* state : states) {
    RETURN_IF_ERROR(add(state->spec.name, state->spec.shape, state->value));
  }
  return MakeAveragingOptimizer(std::move(optimizer), average, std::move(values),
                                std::move(averages), backend);
}

}  // namespace stagecoach
