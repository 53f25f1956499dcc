// Optimizer slots: the states that an optimizer keeps for a parameter, by name. Stages allocate
// them, the planner counts them, checkpoints hold them as tensors "opt/<slot>/<layer>/<path>".
#ifndef STAGECOACH_PLAN_JOB_OPTIMIZER_SLOTS_H_
#define STAGECOACH_PLAN_JOB_OPTIMIZER_SLOTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "plan/job/job_spec.h"
#include "plan/job/optimizer_kinds.h"

namespace stagecoach {

// "m" and "v" of AdamW: in the order of their names.
std::vector<OptimizerState> OptimizerStates(const OptimizerSpec& optimizer, const Shape& parameter);
// Elements of all of them.
int64_t OptimizerElements(const OptimizerSpec& optimizer, const Shape& parameter);

// The average of the weights is kept as an optimizer's state is, for each parameter that is
// trained.
inline constexpr char kAverageSlot[] = "average";
// The operation that moves it (operations/updates/average_update.cc).
inline constexpr char kAverageUpdate[] = "average_update";
// States of the optimizer and the average, in the order of their names.
std::vector<OptimizerState> TrainingStates(const TrainingSpec& training, const Shape& parameter);

// "opt/m/0003/mlp.up.weight" of "m" and "model/0003/mlp.up.weight".
std::string SlotTensorName(std::string_view slot, std::string_view parameter);
// "m" of "opt/m/0003/mlp.up.weight"; empty for anything else.
std::string SlotOfTensor(std::string_view name);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_OPTIMIZER_SLOTS_H_
