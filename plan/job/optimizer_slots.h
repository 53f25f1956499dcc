// Optimizer slots: the state that an optimizer keeps for each parameter, by name. Stages allocate
// it, the planner counts it, checkpoints hold it as tensors "opt/<slot>/<layer>/<path>".
#ifndef STAGECOACH_PLAN_JOB_OPTIMIZER_SLOTS_H_
#define STAGECOACH_PLAN_JOB_OPTIMIZER_SLOTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "plan/job/job_spec.h"

namespace stagecoach {

// "m" and "v" of AdamW: in the order of their names; each is F32 and has the parameter's shape.
std::vector<std::string> OptimizerSlots(const OptimizerSpec& optimizer);

// The average of the weights is kept as an optimizer's state is, for each parameter that is
// trained.
inline constexpr char kAverageSlot[] = "average";
// Slots of the optimizer and of the average, in the order of their names.
std::vector<std::string> TrainingSlots(const TrainingSpec& training);

// "opt/m/0003/mlp.up.weight" of "m" and "model/0003/mlp.up.weight".
std::string SlotTensorName(std::string_view slot, std::string_view parameter);
// "m" of "opt/m/0003/mlp.up.weight"; empty for anything else.
std::string SlotOfTensor(std::string_view name);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_OPTIMIZER_SLOTS_H_
