// Epochs: how often a job has gone through the samples that it trains on. It is 1 after
// train_samples of them, whatever the data source. Samples of a text are its sequences. A
// mini-batch may lie in two epochs. So an epoch of S samples has S / N steps, which need not be
// whole. The stages that read the data know the number of samples. The coordinator learns it with
// the job's first load.
// Threads: pure functions.
#ifndef STAGECOACH_PLAN_JOB_EPOCHS_H_
#define STAGECOACH_PLAN_JOB_EPOCHS_H_

#include <cstdint>

#include "plan/job/job_spec.h"

namespace stagecoach {

// Whether a field of the job counts in epochs.
bool CountsEpochs(const JobSpec& spec);

double StepsPerEpoch(const TrainingSpec& training, int64_t train_samples);

// training.steps, or the least number of steps that completes training.epochs. 0: unknown without
// train_samples.
int64_t StepsOf(const TrainingSpec& training, int64_t train_samples);

// Numbers that miss a whole number only by rounding are taken as whole.
double LeastSteps(double steps);  // the first whole number of steps that is not less
double WholeSpans(double spans);  // how many are complete

// True if `step` steps are done, and the last of them completed a span of every_epochs. Spans are
// counted from the start.
bool EndsEpochs(int64_t step, double every_epochs, double steps_per_epoch);

// Checks that need the number of samples. Errors: INVALID_ARGUMENT with field, number and remedy.
absl::Status CheckEpochs(const JobSpec& spec, int64_t train_samples);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_EPOCHS_H_
