// LearningRateKinds: the forms of the learning rate that a job can name, one file a form in plan/learning_rates. Each
// begins with a warm-up, peak * (s + 1) / warmup_steps while s < warmup_steps, and then takes its own course. Stages
// are told the number and know no form.
// Ownership: the list owns nothing; kinds live as long as the process.
// Threads:   any.
// Errors:    INVALID_ARGUMENT naming field, value and remedy.
#ifndef STAGECOACH_PLAN_LEARNING_RATE_KINDS_H_
#define STAGECOACH_PLAN_LEARNING_RATE_KINDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "plan/job_spec.h"
#include "plan/kind_list.h"

namespace stagecoach {

inline constexpr double kMaxLearningRate = 1e3;

// Step s behind the warm-up.
struct RatePlace {
  int64_t step = 0;          // s, from 0
  int64_t warmup_steps = 0;  // of the warm-up
  double done = 0;           // (s - warmup_steps) / (steps - warmup_steps), at most 1
};

class LearningRateKind : public FieldKind {
 public:
  virtual double Peak(const LearningRateSpec& rate) const = 0;
  virtual int64_t WarmUpSteps(const LearningRateSpec& rate) const = 0;
  virtual double AfterWarmUp(const LearningRateSpec& rate, const RatePlace& place) const = 0;
};

// What the struct of every form visits first.
template <typename Visitor>
void VisitWarmUp(Visitor& visit, double& peak, int64_t& warmup_steps) {
  visit.Between("peak", peak, 0, kMaxLearningRate);
  visit.Count("warmup_steps", warmup_steps, 0, kMaxSteps);
}

// A form whose struct has `peak` and `warmup_steps`.
template <KindFields Fields>
class LearningRateKindOf : public FieldKindOf<LearningRateKind, Fields> {
 public:
  double Peak(const LearningRateSpec& rate) const final { return rate.As<Fields>().peak; }
  int64_t WarmUpSteps(const LearningRateSpec& rate) const final {
    return rate.As<Fields>().warmup_steps;
  }
  double AfterWarmUp(const LearningRateSpec& rate, const RatePlace& place) const final {
    return Course(rate.As<Fields>(), place);
  }

 private:
  virtual double Course(const Fields& rate, const RatePlace& place) const = 0;
};

const KindList<LearningRateKind>& LearningRateKinds();

// Of step s, from 0, of a job of so many steps: a pure function.
double LearningRateAt(const LearningRateSpec& rate, int64_t step, int64_t steps);

// Name and fields, and that the warm-up is not longer than the job.
absl::Status ValidateLearningRate(const LearningRateSpec& rate, int64_t steps);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LEARNING_RATE_KINDS_H_
