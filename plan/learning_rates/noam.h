// noam: rate * width^-0.5 * min((s + 1) * warmup_steps^-1.5, (s + 1)^-0.5), the schedule of the
// Transformer (Vaswani et al., 1706.03762, section 5.3; Lingvo's TransformerSchedule). Its rise is
// the warm-up of every form, so its peak is rate / sqrt(width * warmup_steps).
#ifndef STAGECOACH_PLAN_LEARNING_RATES_NOAM_H_
#define STAGECOACH_PLAN_LEARNING_RATES_NOAM_H_

#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {

struct NoamRate {
  static constexpr const char* kKind = "noam";
  double rate = 1;           // scales the whole course
  int64_t width = 0;         // of the network; d_model
  int64_t warmup_steps = 0;  // at least 1; the course has no value without
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Positive("rate", rate, kMaxLearningRate);
    visit.Count("width", width, 1);
    visit.Count("warmup_steps", warmup_steps, 1, kMaxSteps);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATES_NOAM_H_
