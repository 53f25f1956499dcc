// StepDecision: the coordinator's result from the reports of one step. Only here numbers of
// different stages meet. They are added by layer index and never by stage. So the result has the
// same bits for every partition.
// Units and shapes: reports are in stage order, `cells` the layers of each one's cells. Times are in
//            seconds.
// Errors:    INTERNAL: a report does not fit the partition (count of layers, loss from no stage).
#ifndef STAGECOACH_COORDINATOR_JOB_STEP_DECISION_H_
#define STAGECOACH_COORDINATOR_JOB_STEP_DECISION_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/control.h"

namespace stagecoach {

struct StepDecision {
  double loss = 0;  // mean over the terms of the mini-batch; not a number if there are none
  int64_t targets = 0;
  std::vector<Measure> measures;  // means, and the share of padding
  double gradient_norm = 0;       // over all parameters, before clipping
  bool finite = true;             // false: skip the step everywhere
  bool empty = false;             // no target counts: the step is skipped, without an error
  double gradient_scale = 1;      // min(1, clip / norm)
};

absl::StatusOr<StepDecision> DecideStep(std::span<const StepReport> reports,
                                        std::span<const std::vector<LayerRange>> cells, int layers,
                                        double gradient_clip_norm);

// Means of a report's sums; those that are no number are left out.
std::vector<Measure> MeansOf(const std::vector<Measure>& sums, double terms);

// Share of the stages' time in which none of forward, recompute and backward ran:
// 1 - sum(busy) / (K * step), in [0, 1].
double MeasuredBubble(std::span<const StepReport> reports, double step_seconds);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_STEP_DECISION_H_
