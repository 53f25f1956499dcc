// Simulator: the time a schedule takes on given costs of cells and links, instruction by instruction.
// Pure; 128 stages take milliseconds. The executor's rule is simulated exactly. Instructions run in
// order. A send blocks only while its link is full, a receive until the message has arrived.
// Units: seconds from the start of the step.
#ifndef STAGECOACH_PLAN_SCHEDULES_SIMULATOR_H_
#define STAGECOACH_PLAN_SCHEDULES_SIMULATOR_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

struct CellCost {
  double forward_seconds = 0;
  double backward_seconds = 0;  // B; I and W take half each
  double recompute_seconds = 0;
  double loss_seconds = 0;
  double load_seconds = 0;
  int64_t activation_bytes = 0;     // sent downstream per micro-batch
  int64_t gradient_bytes = 0;       // that come back
  int64_t tied_value_bytes = 0;     // sent downstream once a step
  int64_t tied_gradient_bytes = 0;  // that come back once a step
};

struct LinkCost {
  double bytes_per_second = 1e9;
  double latency_seconds = 0;
};

struct TimelineEvent {
  StageId stage;
  Instruction instruction;
  double start_seconds = 0;
  double end_seconds = 0;
};

struct Timeline {
  std::vector<TimelineEvent> events;  // by stage, then in program order
  std::vector<double> busy_seconds;   // per stage: F, R, B, I, W, L
  double step_seconds = 0;
  double Bubble() const;  // 1 - sum(busy) / (K * step)
};

// Least idle share if every cell takes the same time and a backward takes two forwards'. Most
// schedules have (K - 1) / (v M + K - 1) (plan/schedules/schedule_kinds.h).
double IdealBubble(const ScheduleOptions& options);

// By its time instead of a formula.
double BubbleOfEqualCells(const ScheduleOptions& options);

// costs: by cell. Between two cells of a stage a hand-over costs nothing.
absl::StatusOr<Timeline> Simulate(const Schedule& schedule, std::span<const CellCost> costs,
                                  const LinkCost& link, const PipelineLimits& limits);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_SIMULATOR_H_
