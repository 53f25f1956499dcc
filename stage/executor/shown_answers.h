// ShownAnswers: an observer of evaluations. It reads from the logits what the network says of the
// first held-out samples, and changes nothing.
// Threads: executor thread.
// Errors:  of the device.
#ifndef STAGECOACH_STAGE_EXECUTOR_SHOWN_ANSWERS_H_
#define STAGECOACH_STAGE_EXECUTOR_SHOWN_ANSWERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "plan/job/held_out.h"
#include "stage/backends/backend.h"
#include "stage/cell/chunked_head.h"

namespace stagecoach {

// How many of the first held-out samples are in the command's mini-batch and are shown.
int64_t ShownSamples(const RunCommand& command, int64_t batch_size, const Network& network);

// Adds the answers of the first so many samples to `answers`. Micro-batches and their chunks come
// in order, and each sample has one target. Borrows `backend` and `answers` for as long as it is
// called. Null for no samples.
LookAtLogits GatherAnswers(int64_t samples, Backend& backend, std::vector<ShownAnswer>* answers);

// logits: [samples, classes], F32 or BF16. labels: I32. samples: so many of them, at most all.
absl::StatusOr<std::vector<ShownAnswer>> AnswersOf(const Tensor& logits, const Tensor& labels,
                                                   int64_t samples, Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_SHOWN_ANSWERS_H_
