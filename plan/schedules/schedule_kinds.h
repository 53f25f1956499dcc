// ScheduleKinds: the schedules that a job can name, one file a schedule in plan/schedules/kinds. A kind
// says in which order a stage's forwards and backwards come. Receives, sends, losses and recomputes
// follow from it (plan/schedules/schedule.cc).
// Ownership: the list owns nothing; kinds live as long as the process.
// Threads:   any.
#ifndef STAGECOACH_PLAN_SCHEDULES_SCHEDULE_KINDS_H_
#define STAGECOACH_PLAN_SCHEDULES_SCHEDULE_KINDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/job/kind_list.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

// A forward or a backward of a stage, or a part of a backward.
struct StageWork {
  Opcode op;  // kForward, kBackward, kBackwardInput, kBackwardWeight
  int micro_batch;
  int chunk = 0;  // which of the stage's cells, ascending
  friend bool operator==(const StageWork&, const StageWork&) = default;
};

// How many cells a stage has.
struct CellsPerStage {
  int least = 1, most = 1;
  int usual = 1;  // where the job says nothing
};

class ScheduleKind {
 public:
  virtual ~ScheduleKind() = default;
  virtual std::string_view name() const = 0;  // as in YAML; SCHEDULE_KIND_<NAME> on the wire
  virtual CellsPerStage cells_per_stage() const { return {}; }
  // As many cells a stage as cells_per_stage() allows.
  virtual CellPlacement Place(int stages, int cells_per_stage) const {
    return LoopPlacement(stages, cells_per_stage);
  }
  // By stage, every forward and backward of a training step once, those of a cell ascending. A
  // backward is whole, or in both its parts.
  virtual std::vector<std::vector<StageWork>> Orders(const ScheduleOptions& options) const;
  // Share of all stages' time without work. Stages are equal, links cost nothing, and a backward
  // takes twice the time of a forward. The share is (K - 1) / (v M + K - 1) with v cells a stage
  // (GPipe section 2.3), unless the schedule fills some of it. With
  // several cells and M < K it is by the time of equal cells.
  virtual double IdealBubble(const ScheduleOptions& options) const;

 protected:
  // For kinds whose stages can be told one by one; each kind has this or Orders.
  virtual std::vector<StageWork> Order(const ScheduleOptions& options, int stage) const;
};

// Begins with `forwards` forwards; then in turn a forward, if any is left, and a backward.
std::vector<StageWork> RunAhead(int forwards, int micro_batches);
// With each backward in two parts: that of the weights comes so many micro-batches after that of
// the inputs.
std::vector<StageWork> SplitBackwards(const std::vector<StageWork>& whole, int put_off,
                                      int micro_batches);
// If the weights' parts fill all but the wait for the first forwards: (K - 1) / (3 v M + K - 1).
double FilledBubble(const ScheduleOptions& options);

const KindList<ScheduleKind>& ScheduleKinds();
// The cells of a job's stages, and how its schedule places them. cells_per_stage: 0 takes the usual
// number, and others must be allowed.
CellPlacement PlacementOf(const std::string& kind, int stages, int64_t cells_per_stage);
int64_t CellsPerStageOf(const std::string& kind, int64_t cells_per_stage);
std::vector<std::string> ScheduleNames();  // of all that need no text

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_SCHEDULE_KINDS_H_
