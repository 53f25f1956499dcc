// SortedLines: a job with `write` sorts sentences to translate by length, in windows of so many lines.
// So a group, which is a micro-batch of them, has sentences of about one length. The window depends on
// the size of a group only: jobs with equal groups, on any number of stages, have them of the same lines.
// Threads: pure functions.
#ifndef STAGECOACH_PLAN_JOB_SORTED_LINES_H_
#define STAGECOACH_PLAN_JOB_SORTED_LINES_H_

#include <cstdint>

#include "plan/job/job_spec.h"

namespace stagecoach {

inline constexpr int64_t kSortedGroups = 16;

inline int64_t SortedLines(const TrainingSpec& training) {
  return kSortedGroups * MicroBatchSize(training.batch_size, training.micro_batches, 0);
}

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_SORTED_LINES_H_
