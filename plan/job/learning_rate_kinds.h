// LearningRateKinds: the forms of the learning rate that a job can name, one file a form in
// plan/learning_rates. Each begins with a warm-up, peak * (s + 1) / warmup while s < warmup, and
// then takes its own course. Spans are in steps or in epochs (plan/job/epochs.h). Stages get the
// number and know no form.
// Ownership: the list owns nothing; kinds live as long as the process.
// Threads:   any.
// Errors:    INVALID_ARGUMENT naming field, value and remedy.
#ifndef STAGECOACH_PLAN_JOB_LEARNING_RATE_KINDS_H_
#define STAGECOACH_PLAN_JOB_LEARNING_RATE_KINDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "plan/job/job_spec.h"
#include "plan/job/kind_list.h"

namespace stagecoach {

inline constexpr double kMaxLearningRate = 1e3;

// The place of step s behind the warm-up.
struct RatePlace {
  int64_t step = 0;          // s, from 0
  int64_t warmup_steps = 0;  // of the warm-up
  double done = 0;           // (s - warmup_steps) / (steps - warmup_steps), at most 1
  double steps_per_epoch = 0;
};

// A span in one of two units; the other is 0.
struct RateSpan {
  double steps = 0, epochs = 0;
  double InSteps(double steps_per_epoch) const { return steps + epochs * steps_per_epoch; }
};

class LearningRateKind : public FieldKind {
 public:
  virtual double Peak(const LearningRateSpec& rate) const = 0;
  virtual RateSpan WarmUp(const LearningRateSpec& rate) const = 0;
  // Checks beyond ranges; errors name the field.
  virtual absl::Status CheckSpans(const LearningRateSpec& /*rate*/) const {
    return absl::OkStatus();
  }
  virtual bool CountsEpochs(const LearningRateSpec& rate) const { return WarmUp(rate).epochs > 0; }
  virtual double AfterWarmUp(const LearningRateSpec& rate, const RatePlace& place) const = 0;
};

// The fields that the struct of every form visits first.
template <typename Visitor>
void VisitWarmUp(Visitor& visit, double& peak, int64_t& warmup_steps, double& warmup_epochs) {
  visit.Between("peak", peak, 0, kMaxLearningRate);
  visit.Count("warmup_steps", warmup_steps, 0, kMaxSteps);
  visit.Between("warmup_epochs", warmup_epochs, 0, kMaxEpochs);
}

// A form whose struct has `peak`, `warmup_steps` and `warmup_epochs`.
template <KindFields Fields>
class LearningRateKindOf : public FieldKindOf<LearningRateKind, Fields> {
 public:
  double Peak(const LearningRateSpec& rate) const final { return rate.As<Fields>().peak; }
  RateSpan WarmUp(const LearningRateSpec& rate) const final {
    const Fields fields = rate.As<Fields>();
    return {static_cast<double>(fields.warmup_steps), fields.warmup_epochs};
  }
  double AfterWarmUp(const LearningRateSpec& rate, const RatePlace& place) const final {
    return Course(rate.As<Fields>(), place);
  }

 private:
  virtual double Course(const Fields& rate, const RatePlace& place) const = 0;
};

const KindList<LearningRateKind>& LearningRateKinds();

// The rate of step `step`, from 0, of a job of `steps` steps. steps_per_epoch: may be 0 if no field
// counts epochs.
double LearningRateAt(const LearningRateSpec& rate, int64_t step, int64_t steps,
                      double steps_per_epoch = 0);

// Checks that epochs are 0 or a valid span.
absl::Status CheckRateEpochs(const std::string& path, double epochs);
// Checks name and fields.
absl::Status ValidateLearningRate(const LearningRateSpec& rate);
// Checks that the warm-up is not longer than the job.
absl::Status CheckWarmUp(const LearningRateSpec& rate, int64_t steps, double steps_per_epoch = 0);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_LEARNING_RATE_KINDS_H_
