// CellTranslation: a stage's part in the translations of an evaluation (evaluation.translate): the
// cell in the form that writes token by token, and its executor. On the last stage also what BLEU and
// chrF2 are counted from, and the first held-out sentences.
// The next command that does not translate drops it, with the keys and values of hypotheses.
// Ownership: borrows the loaded cell, which must not be trained meanwhile, back end and clocks.
// Threads:   executor thread only.
// Errors:    RESOURCE_EXHAUSTED: no memory for keys and values. FAILED_PRECONDITION: logits are not
//            finite. As DecodingExecutor.
// Determinism: translations depend on weights, data and the job's numbers of mini-batch and
//            micro-batches, and not on the number of stages.
#ifndef STAGECOACH_STAGE_RUNTIME_CELL_TRANSLATION_H_
#define STAGECOACH_STAGE_RUNTIME_CELL_TRANSLATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "stage/decoding/translation_search.h"
#include "stage/executor/decoding_executor.h"

namespace stagecoach {

struct LoadedCell;

class CellTranslation {
 public:
  static absl::StatusOr<std::unique_ptr<CellTranslation>> Create(const LoadedCell& loaded,
                                                                 Backend* backend,
                                                                 PhaseClock* phases,
                                                                 const Clock* clock);

  void Begin(const RunCommand& command);
  absl::StatusOr<Progress> Advance() { return executor_->Advance(1); }
  std::string WaitingFor() const { return executor_->WaitingFor(); }
  MicroBatchId current_micro_batch() const { return executor_->current_micro_batch(); }
  uint64_t stale_messages() const { return executor_->stale_messages(); }
  absl::StatusOr<StepReport> TakeReport();  // after kFinished
  void Abandon() { executor_->Abandon(); }

 private:
  explicit CellTranslation(const LoadedCell& loaded) : loaded_(loaded) {}

  const LoadedCell& loaded_;
  DecodingForm form_;
  TranslationSearch search_;
  std::unique_ptr<CellDecoder> decoder_;
  std::unique_ptr<DecodingExecutor> executor_;
  uint64_t batch_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_CELL_TRANSLATION_H_
