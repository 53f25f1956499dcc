// PipelineWalk: runs the programs of all stages together as far as messages let them, without time.
// The rule is the executor's: instructions in order, a send goes while its link has room, a receive
// once the message is there. Whether the programs come to an end does not depend on who goes first,
// so one walk proves or disproves a deadlock.
// Errors: sends and receives must be of edges between two stages (ValidateSchedule); CHECKed.
#ifndef STAGECOACH_PLAN_SCHEDULES_PIPELINE_WALK_H_
#define STAGECOACH_PLAN_SCHEDULES_PIPELINE_WALK_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "plan/schedules/schedule.h"

namespace stagecoach {

// One end of one direction of an edge, which lies between cells `edge` and `edge` + 1.
struct LinkEnd {
  bool sends = false;       // else receives
  bool activations = true;  // downstream; else gradients, upstream
  int edge = 0;
  bool tied = false;  // a message of tied parameters
  size_t index() const { return 2 * static_cast<size_t>(edge) + (activations ? 0 : 1); }
};

// The link operation of the instruction, if any.
std::optional<LinkEnd> LinkEndOf(const Instruction& instruction);

struct WalkStep {
  int stage = 0;
  size_t position = 0;  // in the stage's program
  size_t message = 0;   // number of the message on its link, for sends and receives
};

// Visits every instruction that can run, each after all that it waits for. Returns the position
// where each stage stands at the end: the program's size if it finished.
std::vector<size_t> WalkPipeline(const ScheduleOptions& options,
                                 const std::vector<StageProgram>& programs, int link_capacity,
                                 const std::function<void(const WalkStep&)>& visit);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_PIPELINE_WALK_H_
