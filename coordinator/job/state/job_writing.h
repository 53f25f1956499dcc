// JobWriting: the mini-batch of lines that a job with `write` has at hand. JobState::step counts
// those that are written. Each load resets it, so that the mini-batch begins anew.
#ifndef STAGECOACH_COORDINATOR_JOB_STATE_JOB_WRITING_H_
#define STAGECOACH_COORDINATOR_JOB_STATE_JOB_WRITING_H_

#include <cstdint>

namespace stagecoach {

struct JobWriting {
  int64_t rounds = 1;        // of the next command (RunCommand::rounds)
  int64_t first_rounds = 1;  // of the first command of the next mini-batch
  bool goes_on = false;      // with the mini-batch; false: it begins
  // Of the mini-batch at hand.
  double begun_seconds = 0;  // when it began
  int64_t done = 0;          // texts
  int64_t tokens = 0;        // of those
  int64_t bytes = 0;         // of all texts, done or not
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_STATE_JOB_WRITING_H_
