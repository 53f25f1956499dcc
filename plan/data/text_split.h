// Text split: how the bytes of a text become sequences, for training and for evaluation, and how
// long a text must be. The stages divide by it; the client asks before it submits.
// Threads: pure functions.
// Units:   bytes are tokens; a sequence is `context` tokens and reads one more, its last target.
#ifndef STAGECOACH_PLAN_DATA_TEXT_SPLIT_H_
#define STAGECOACH_PLAN_DATA_TEXT_SPLIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct TextSplit {
  int64_t train_bytes = 0;  // the first 90 %, rounded down; the rest is held out
  int64_t train_sequences = 0;
  int64_t evaluation_sequences = 0;
};
TextSplit SplitText(int64_t bytes, int64_t context);

// INVALID_ARGUMENT: the text has no sequence to train on, or none to evaluate with although the job
// evaluates. The error names the file, its size, the least size that suffices, and the remedy.
// Fewer sequences than a mini-batch are fine: they come again.
absl::Status CheckTextLength(const JobSpec& spec, int64_t context, int64_t bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TEXT_SPLIT_H_
