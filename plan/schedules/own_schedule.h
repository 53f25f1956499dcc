// OwnSchedule: a schedule that a user wrote (docs/own_schedules.md). A value. There are two forms.
// An order has forwards and backwards alone: F, B, I and W. Everything else follows from it, as it
// does from the order of a kind. A complete text has every instruction, in the form that
// FormatSchedule prints, and training runs it as it stands. Evaluations take the order of its
// forwards.
// Errors: INVALID_ARGUMENT that begins with "pipeline.own_schedule" and marks the bad word.
#ifndef STAGECOACH_PLAN_SCHEDULES_OWN_SCHEDULE_H_
#define STAGECOACH_PLAN_SCHEDULES_OWN_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

// Name of the kind whose schedule is the text (plan/schedules/kinds/own.cc).
inline constexpr char kOwnSchedule[] = "own";

struct OwnSchedule {
  std::vector<StageProgram> programs;  // as written
  CellPlacement placement;             // empty: cell c is on stage c
  bool complete = false;               // not an order alone
  int cells() const {
    return static_cast<int>(placement.empty() ? programs.size() : placement.size());
  }
};

// What the job says elsewhere. layers: of the network; 0: not known.
struct OwnScheduleShape {
  int64_t stages, micro_batches, layers;
};
absl::StatusOr<OwnSchedule> ParseOwnSchedule(const std::string& text, const OwnScheduleShape& shape);

// Validates what MakeSchedule made of a user's text, for links of the usual capacity.
absl::Status CheckOwnSchedule(const Schedule& schedule);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_OWN_SCHEDULE_H_
