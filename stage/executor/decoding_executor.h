// DecodingExecutor: one stage's part in a pass that writes the texts of a mini-batch token by token. Its
// micro-batches are groups of texts (decoding/token_search.h). They follow each other through the
// pipeline, so that stages work on different groups.
//   Sources go down first, group after group, if the network has some. Then the last stage searches. It
//   sends the rows that a group computes next up, stage by stage. Each stage computes them and sends
//   activations down. In a round each group has its turn until it is over: rows of no sample say so.
//   A pass may pause behind a number of rounds. The next one goes on where it paused.
// It never waits for a peer: Advance does what it can, and returns; only StageRuntime waits.
// Ownership: borrows decoder, form, links, data and clocks for its life.
// Threads:   executor thread only.
// Errors:    the first error ends the pass; the caller closes the links with it. As StageExecutor.
// Determinism: texts depend neither on rounds, on the number of stages nor on when messages arrive.
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
#include "decoding/token_search.h"
#include "stage/data/batch_source.h"
#include "stage/decoding/cell_decoder.h"
#include "stage/executor/boundary_port.h"
#include "stage/executor/executor.h"

namespace stagecoach {

struct DecodingWork {
  Fence fence;
  uint64_t batch = 0;  // of the data's held-out samples
  int groups = 1;      // its micro-batches
  // On the last stage, by group; they live until the mini-batch is over or abandoned.
  std::vector<TokenSearch*> searches;
  StepChoice choice;
  int64_t rounds = 0;    // the pass pauses behind so many; 0: it does not
  bool goes_on = false;  // with the mini-batch of the pass before, which paused
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
    const BatchSource* data = nullptr;  // where the cell reads a source
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
  bool paused() const { return paused_; }  // after kFinished: some texts are not over
  void Abandon();                          // the pass, after an error or abort
  uint64_t stale_messages() const;         // dropped since construction

 private:
  // Rows that are computed next, or activations of such.
  struct Message {
    int group = 0;
    Binding binding;
    Tensors tensors;
  };
  struct Group {
    int64_t samples = -1;                  // of its last rows; -1: there were none
    bool rows_over = false;                // no more come
    bool over = false;                     // nothing more is computed
    int64_t rounds_asked = 0, rounds = 0;  // of this pass: whose rows came, that are computed
    std::optional<Message> rows;           // to compute
    // On the last stage.
    std::optional<RowBatch> asked;             // its candidates are due
    std::optional<std::vector<int64_t>> kept;  // TokenSearch::Shrink's, where the pass paused
  };

  bool last_stage() const { return parts_.stage.value + 1 == parts_.stages; }
  Group& At(int group) { return groups_[static_cast<size_t>(group)]; }
  TokenSearch& SearchOf(int group) { return *work_->searches[static_cast<size_t>(group)]; }
  // Whether the pass expects no more rows of the group, or computes no more.
  bool RowsEnd(const Group& group) const { return group.rows_over || Pauses(group.rounds_asked); }
  bool Ends(const Group& group) const { return group.over || Pauses(group.rounds); }
  bool Pauses(int64_t rounds) const { return work_->rounds > 0 && rounds == work_->rounds; }
  // The group behind this one, in a circle, for which `ends` is false; the same if there is none.
  template <typename IsEnd>
  int Next(int group, IsEnd ends) const;
  void EndPass();
  // Each returns whether there was something to do.
  absl::StatusOr<bool> AdvanceSource();
  absl::StatusOr<bool> ReceiveRows();
  absl::StatusOr<bool> SendRows();
  absl::StatusOr<bool> AdvanceTarget();
  absl::StatusOr<bool> SendActivations(BoundaryPort* port);
  absl::StatusOr<bool> SendWaiting();

  absl::StatusOr<std::optional<Message>> SourceInputs();
  absl::Status AskAll();
  // Says which rows of the group come next.
  absl::Status AskRows(int group);
  absl::Status CheckKept(int group, const std::vector<int64_t>& samples) const;
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
  std::vector<Group> groups_;
  bool in_source_ = false, in_target_ = false;
  bool asked_all_ = false;
  int group_ = 0;      // at hand
  int next_rows_ = 0;  // the group whose rows come next
  std::deque<Message> rows_to_send_;
  std::optional<Message> to_send_;  // activations
  bool paused_ = false, blocked_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_DECODING_EXECUTOR_H_
