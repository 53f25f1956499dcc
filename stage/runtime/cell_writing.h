// CellWriting: a stage's part in texts that are written token by token: translations of an evaluation
// (evaluation.translate), or the lines of a job with `write`. It has the cell in the form for that and
// its executor; on the last stage also what the texts are for (text_task.h).
// The next command that does not write drops it, with the keys and values of hypotheses.
// Ownership: borrows the loaded cell, which must not be trained meanwhile, back end and clocks.
// Threads:   executor thread only.
// Errors:    RESOURCE_EXHAUSTED: no memory for keys and values. FAILED_PRECONDITION: logits are not
//            finite; no mini-batch has paused. As DecodingExecutor.
// Determinism: texts depend on weights, data and the job's numbers of mini-batch and micro-batches,
//            and neither on the number of stages nor on pauses.
#ifndef STAGECOACH_STAGE_RUNTIME_CELL_WRITING_H_
#define STAGECOACH_STAGE_RUNTIME_CELL_WRITING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "stage/executor/decoding_executor.h"
#include "stage/runtime/text_task.h"

namespace stagecoach {

class CellWriting {
 public:
  static absl::StatusOr<std::unique_ptr<CellWriting>> Create(const LoadedCells& loaded,
                                                             Backend* backend, PhaseClock* phases,
                                                             const Clock* clock);

  absl::Status Begin(const RunCommand& command);
  absl::StatusOr<Progress> Advance() { return executor_->Advance(1); }
  std::string WaitingFor() const { return executor_->WaitingFor(); }
  MicroBatchId current_micro_batch() const { return executor_->current_micro_batch(); }
  uint64_t stale_messages() const { return executor_->stale_messages(); }
  absl::StatusOr<StepReport> TakeReport();  // after kFinished
  void Abandon() { executor_->Abandon(); }

 private:
  explicit CellWriting(const LoadedCells& loaded) : loaded_(loaded) {}

  const LoadedCells& loaded_;
  DecodingForm form_;
  std::unique_ptr<CellDecoder> decoder_;
  std::unique_ptr<TextTask> task_;  // on the last stage
  std::unique_ptr<DecodingExecutor> executor_;
  std::vector<TokenSearch*> searches_;  // of the mini-batch
  uint64_t batch_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_CELL_WRITING_H_
