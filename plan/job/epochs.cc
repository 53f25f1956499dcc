#include "plan/job/epochs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {
namespace {

// Quotients that are whole but for their rounding.
constexpr double kSlack = 1e-9;

}  // namespace

double LeastSteps(double steps) { return std::ceil(steps * (1 - kSlack)); }

double WholeSpans(double spans) { return std::floor(spans * (1 + kSlack)); }

bool CountsEpochs(const JobSpec& spec) {
  return spec.training.epochs > 0 || spec.evaluation.every_epochs > 0 ||
         spec.checkpoint.every_epochs > 0 ||
         LearningRateKinds()
             .Named(spec.training.learning_rate.kind)
             .CountsEpochs(spec.training.learning_rate);
}

double StepsPerEpoch(const TrainingSpec& training, int64_t train_samples) {
  return static_cast<double>(train_samples) / static_cast<double>(training.batch_size);
}

int64_t StepsOf(const TrainingSpec& training, int64_t train_samples) {
  if (training.epochs == 0) return training.steps;
  const double steps = LeastSteps(training.epochs * StepsPerEpoch(training, train_samples));
  return static_cast<int64_t>(std::min(steps, 2.0 * static_cast<double>(kMaxSteps)));
}

bool EndsEpochs(int64_t step, double every_epochs, double steps_per_epoch) {
  const double span = every_epochs * steps_per_epoch;
  if (step < 1 || span <= 0) return false;
  const auto spans = [span](int64_t steps) {
    return WholeSpans(static_cast<double>(steps) / span);
  };
  return spans(step) > spans(step - 1);
}

absl::Status CheckEpochs(const JobSpec& spec, int64_t train_samples) {
  const TrainingSpec& training = spec.training;
  if (!CountsEpochs(spec)) return absl::OkStatus();
  if (train_samples < 1) {
    return absl::InvalidArgumentError(
        "data: it has no samples to train on, so an epoch has no steps; give more data, or "
        "training.steps and no epochs");
  }
  const int64_t steps = StepsOf(training, train_samples);
  if (steps < 1 || steps > kMaxSteps) {
    return FieldError("training.epochs", absl::StrCat(training.epochs),
                      absl::StrCat("of ", train_samples, " samples in mini-batches of ",
                                   training.batch_size, " are ", steps, " steps; a job has 1 to ",
                                   kMaxSteps, ": give fewer epochs or a larger batch_size"));
  }
  return CheckWarmUp(training.learning_rate, steps, StepsPerEpoch(training, train_samples));
}

}  // namespace stagecoach
