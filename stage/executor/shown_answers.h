// ShownAnswers: what a network says of the first samples of a micro-batch, read from its logits.
// Threads: executor thread.
// Errors:  of the device.
#ifndef STAGECOACH_STAGE_EXECUTOR_SHOWN_ANSWERS_H_
#define STAGECOACH_STAGE_EXECUTOR_SHOWN_ANSWERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/job/held_out.h"
#include "stage/backends/backend.h"

namespace stagecoach {

// logits: [samples, classes], F32 or BF16. labels: I32. samples: so many of them, at most all.
absl::StatusOr<std::vector<ShownAnswer>> AnswersOf(const Tensor& logits, const Tensor& labels,
                                                   int64_t samples, Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_SHOWN_ANSWERS_H_
