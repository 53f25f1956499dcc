// TextTask: what a mini-batch of texts is for, on the last stage: it gives the searches, and takes what
// they have found. There is one for the translations of an evaluation and one for a job with `write`.
// Ownership: borrows the loaded cell.
// Threads:   executor thread only.
// Errors:    those of the data and of the tokenizer.
#ifndef STAGECOACH_STAGE_RUNTIME_TEXT_TASK_H_
#define STAGECOACH_STAGE_RUNTIME_TEXT_TASK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "decoding/token_search.h"
#include "plan/control.h"

namespace stagecoach {

struct LoadedCells;

class TextTask {
 public:
  virtual ~TextTask() = default;
  // The searches of a mini-batch, one a micro-batch. They live until the next call.
  virtual absl::StatusOr<std::vector<TokenSearch*>> Begin(uint64_t batch) = 0;
  virtual StepChoice choice() const = 0;
  // After a pass, whether it has paused or not.
  virtual absl::Status Report(StepReport* report) = 0;
};

// pool_rows: of keys and values. The job has evaluation.translate.
std::unique_ptr<TextTask> TranslateHeldOut(const LoadedCells& loaded, int64_t pool_rows);
// The job has `write`.
absl::StatusOr<std::unique_ptr<TextTask>> WriteLines(const LoadedCells& loaded, int64_t pool_rows);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_TEXT_TASK_H_
