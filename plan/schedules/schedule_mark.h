// Marks: a printed program with the bad place in double brackets, for errors.
#ifndef STAGECOACH_PLAN_SCHEDULES_SCHEDULE_MARK_H_
#define STAGECOACH_PLAN_SCHEDULES_SCHEDULE_MARK_H_

#include <string>
#include <vector>

#include "plan/schedules/schedule.h"

namespace stagecoach {

std::string StageLabel(int stage);  // "stage 0:"

// "stage 0: in0 [[F1]] >a0 ..."; `bad` == size marks the end. Long programs are cut to the
// surroundings.
std::string MarkWord(const std::string& label, const std::vector<std::string>& words, size_t bad);
std::string MarkInstruction(const StageProgram& program, size_t bad, bool with_cell);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_SCHEDULE_MARK_H_
