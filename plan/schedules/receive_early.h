// ReceiveEarly: moves receives forward in programs, so that no sender waits for room in a link.
// Where stages have several cells, a stage may be busy with one while messages for another arrive.
// Received just before its use, each would keep its sender waiting, and breadth_first would never
// end. So message n of a link is received by the time when message n + capacity is ready to be sent,
// in front of all that ends then. The times are those of equal cells: a forward takes 1, a backward
// 2, each of its parts 1. A receive waits for its message, so none stands earlier than that asks for.
#ifndef STAGECOACH_PLAN_SCHEDULES_RECEIVE_EARLY_H_
#define STAGECOACH_PLAN_SCHEDULES_RECEIVE_EARLY_H_

#include <vector>

#include "plan/schedules/schedule.h"

namespace stagecoach {

// programs: with each receive just before its use; they must end with links of any size.
void ReceiveEarly(const ScheduleOptions& options, int link_capacity,
                  std::vector<StageProgram>* programs);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_RECEIVE_EARLY_H_
