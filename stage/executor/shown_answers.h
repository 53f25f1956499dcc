// ShownAnswers: an observer of evaluations. It reads the network's answers for the first held-out
// samples from the logits, and changes nothing.
// Threads: executor thread.
// Errors:  the device's.
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

// The number of samples of the command's mini-batch that are shown.
int64_t ShownSamples(const RunCommand& command, int64_t batch_size, const Network& network);

// The result adds the answers of the first `samples` samples to `answers`. Micro-batches and their
// chunks come in order, and each sample has one target. It borrows `backend` and `answers` as long
// as it is called. Null for no samples.
LookAtLogits GatherAnswers(int64_t samples, Backend& backend, std::vector<ShownAnswer>* answers);

// The answers of the first `samples` rows. logits: [rows, classes], F32 or BF16. labels: I32.
absl::StatusOr<std::vector<ShownAnswer>> AnswersOf(const Tensor& logits, const Tensor& labels,
                                                   int64_t samples, Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_SHOWN_ANSWERS_H_
