// DecodingExecutor: one stage's part in a pass that translates a mini-batch token by token. Its
// micro-batches are groups of sentences (decoding/translation_group.h). They follow each other through
// the pipeline, so that stages work on different groups.
//   Sources go down first, group after group. Then the last stage searches. It sends the rows that a
//   group computes next up, stage by stage. Each stage computes them and sends activations down. In a
//   round each group has its turn until it is over: rows of no sample say so.
// It never waits for a peer: Advance does what it can, and returns; only StageRuntime waits.
// Ownership: borrows decoder, form, links, data and clocks for its life.
// Threads:   executor thread only.
// Errors:    the first error ends the pass; the caller closes the links with it. As StageExecutor.
// Determinism: translations depend neither on the number of stages nor on when messages arrive.
#ifndef STAGECOACH_STAGE_EXECUTOR_DECODING_EXECUTOR_H_
#define STAGECOACH_STAGE_EXECUTOR_DECODING_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "decoding/translation_group.h"
#include "stage/data/batch_source.h"
#include "stage/decoding/cell_decoder.h"
#include "stage/executor/boundary_port.h"
#include "stage/executor/executor.h"

namespace stagecoach {

struct DecodingWork {
  Fence fence;
  uint64_t batch = 0;  // of the held-out samples
  int groups = 1;      // its micro-batches
  TranslationOptions options;
  StepChoice choice;
};

class DecodingExecutor {
 public:
  struct Parts {
    StageId stage;
    int stages = 1;
    CellDecoder* decoder = nullptr;
    const DecodingForm* form = nullptr;
    Backend* backend = nullptr;
    Link* upstream = nullptr;           // null on stage 0
    Link* downstream = nullptr;         // null on stage K - 1
    const BatchSource* data = nullptr;  // where the cell reads a source, and on the last stage
    PhaseClock* phases = nullptr;
    const Clock* clock = nullptr;
  };
  explicit DecodingExecutor(const Parts& parts);
  ~DecodingExecutor();

  void Begin(const DecodingWork& work);
  // At most so many messages and computations.
  absl::StatusOr<Progress> Advance(int most);
  std::string WaitingFor() const;             // as StageExecutor's
  MicroBatchId current_micro_batch() const {  // invalid without a pass
    return work_.has_value() ? MicroBatchId(group_) : MicroBatchId();
  }
  // Of the last stage, after kFinished. Numbers are those of the mini-batch's samples.
  std::vector<TranslationGroup::Translation> TakeTranslations();
  void Abandon();                   // the pass, after an error or abort
  uint64_t stale_messages() const;  // dropped since construction

 private:
  // Rows that are computed next, or activations of such.
  struct Message {
    int group = 0;
    Binding binding;
    Tensors tensors;
  };
  struct Group {
    int64_t samples = -1;  // of its last rows; -1: there were none
    bool over = false;
    std::optional<Message> rows;  // to compute
    // On the last stage.
    std::unique_ptr<TranslationGroup> search;
    std::optional<RowBatch> asked;  // its candidates are due
  };

  bool last_stage() const { return parts_.stage.value + 1 == parts_.stages; }
  // Each returns whether there was something to do.
  absl::StatusOr<bool> AdvanceSource();
  absl::StatusOr<bool> ReceiveRows();
  absl::StatusOr<bool> SendRows();
  absl::StatusOr<bool> AdvanceTarget();
  absl::StatusOr<bool> SendActivations(BoundaryPort* port);
  absl::StatusOr<bool> SendWaiting();

  absl::StatusOr<std::optional<Message>> SourceInputs();
  absl::Status BeginSearches();
  // Says which rows of the group come next. kept: TranslationGroup::Shrink's.
  absl::Status AskRows(int group, const std::optional<std::vector<int64_t>>& kept);
  absl::StatusOr<Tensors> Compute(const Message& rows, Tensors received);
  absl::Status Search(int group, const Tensor& logits);
  absl::StatusOr<Tensor> ToDevice(const std::vector<int32_t>& ids, const ValueType& type,
                                  const Binding& binding) const;
  absl::StatusOr<Tensors> EmptyTuple(const std::vector<ValueType>& types) const;
  absl::Status LinkStatus() const;
  bool Finished() const;

  const Parts parts_;
  const std::vector<ValueType> row_types_;
  std::optional<BoundaryPort> source_up_, source_down_, up_, down_;  // where something crosses
  std::optional<DecodingWork> work_;
  std::unique_ptr<RowPool> pool_;  // on the last stage
  std::vector<Group> groups_;
  bool in_source_ = false, in_target_ = false;
  int group_ = 0;                // at hand
  int next_rows_ = 0;            // the group whose rows come next
  std::vector<bool> rows_over_;  // by group: no more come
  std::deque<Message> rows_to_send_;
  std::optional<Message> to_send_;  // activations
  std::vector<TranslationGroup::Translation> done_;
  bool blocked_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_DECODING_EXECUTOR_H_
