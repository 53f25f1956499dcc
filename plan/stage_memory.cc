// ForecastStageMemory: walks a stage's program and keeps books of what is alive.
#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "base/check.h"
#include "plan/card_memory.h"
#include "plan/cost_model.h"
#include "plan/optimizer_slots.h"
#include "plan/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kIdBytes = 4;

// Bytes per sequence of the cell [first, last).
struct CellBytes {
  int64_t input = 0;
  int64_t output = 0;
  int64_t stash = 0;
  int64_t backward_peak = 0;  // of stashes, gradients and scratch, layer by layer from the last
  int64_t forward_peak = 0;   // of a forward that keeps nothing, beyond its input
  int64_t kept_peak = 0;      // of a forward that keeps the stashes, its input and they included
  bool keeps_input = false;   // the input is a part of the first stash
};

CellBytes BytesOfCell(const ExpandedModel& model, const std::vector<LayerCost>& costs, int first,
                      int last) {
  CellBytes bytes;
  bytes.input = first == 0 ? model.context * kIdBytes : costs[first - 1].boundary_bytes;
  bytes.output = costs[last - 1].boundary_bytes;
  bytes.keeps_input = costs[first].keeps_input;
  for (int i = first; i < last; ++i) {
    const LayerCost& cost = costs[i];
    const int64_t into = i == first ? bytes.input : costs[i - 1].boundary_bytes;
    bytes.kept_peak = std::max(bytes.kept_peak, bytes.stash + into + cost.forward_kept_bytes);
    bytes.stash += cost.stash_bytes;
    bytes.backward_peak =
        std::max(bytes.backward_peak, bytes.stash + cost.boundary_bytes + cost.scratch_bytes);
    const int64_t input = i == first ? 0 : costs[i - 1].boundary_bytes;
    bytes.forward_peak = std::max(bytes.forward_peak, input + cost.forward_bytes);
  }
  return bytes;
}

class ProgramWalk {
 public:
  ProgramWalk(const StageProgram& program, const CellBytes& cell, const StageMemoryQuery& query)
      : program_(program), cell_(cell), query_(query), recomputed_(query.micro_batches, false) {
    for (const Instruction& instruction : program.instructions) {
      if (instruction.op == Op::kReceiveActivation) ++to_receive_;
      if (instruction.op == Op::kLoss) last_ = true;
      if (instruction.op == Op::kRecompute) recomputed_[instruction.micro_batch.value] = true;
    }
  }

  int64_t Peak(int64_t target_bytes) {
    for (const Instruction& instruction : program_.instructions) {
      const int m = instruction.micro_batch.value;
      Execute(instruction.op, m, MicroBatchSize(query_.batch_size, query_.micro_batches, m),
              target_bytes);
    }
    return peak_;
  }

 private:
  static int64_t Times(int64_t bytes, int64_t sequences) {
    return SaturatingMultiply(bytes, sequences);
  }
  // Alive now, and for a moment `transient` more.
  void Note(int64_t transient) {
    const int64_t at_links = query_.card ? Staged() : InLink();
    peak_ = std::max(peak_, SaturatingAdd(SaturatingAdd(alive_, at_links), transient));
  }
  int64_t InLink() const { return to_receive_ > 0 ? Times(cell_.input, LargestMicroBatch()) : 0; }
  // What copies to links still read, and what is taken ahead for those from links.
  int64_t Staged() const {
    const auto held = [this](int64_t bytes, int64_t sent) {
      return Times(Times(bytes, LargestMicroBatch()), std::min<int64_t>(sent, kCardOutbox));
    };
    int64_t bytes =
        SaturatingAdd(held(cell_.output, sent_down_ - answered_), held(cell_.input, sent_up_));
    for (const int64_t ahead : ahead_) bytes = SaturatingAdd(bytes, ahead);
    return bytes;
  }
  // Ids too are copied to a card. The place of the next message is taken with this one's, unless
  // there is one of its size, which this one leaves free.
  void KeepArrived(int64_t bytes) {
    if (query_.card && std::find(ahead_.begin(), ahead_.end(), bytes) == ahead_.end()) {
      if (ahead_.size() == kCardAhead) ahead_.pop_front();
      ahead_.push_back(bytes);
    }
    Keep(bytes);
  }
  void Keep(int64_t bytes) {
    alive_ = SaturatingAdd(alive_, bytes);
    Note(0);
  }
  // Beyond 64 bits there is no way back: too much stays too much.
  void Drop(int64_t bytes) {
    if (alive_ != std::numeric_limits<int64_t>::max()) alive_ -= bytes;
  }
  int64_t LargestMicroBatch() const {
    return MicroBatchSize(query_.batch_size, query_.micro_batches, 0);
  }

  void Execute(Op op, int m, int64_t n, int64_t target_bytes) {
    const int64_t input = Times(cell_.input, n);
    const int64_t output = Times(cell_.output, n);
    const int64_t stash = Times(cell_.stash, n);
    switch (op) {
      case Op::kReceiveActivation:
        --to_receive_;
        return KeepArrived(input);
      case Op::kLoadInput:
        return KeepArrived(input);
      case Op::kForward:
        if (recomputed_[m]) {
          Note(Times(cell_.forward_peak, n));
          if (!last_) Keep(output);  // the last stage's logits come again with the recompute
          return;
        }
        Note(Times(cell_.kept_peak - cell_.input, n));
        Drop(input);  // the first layer's stash is what is left of it
        return Keep(SaturatingAdd(stash, output));
      case Op::kRecompute:
        // The input is there until all is done, as a part of the stash or beside it.
        Note(Times(cell_.kept_peak - (cell_.keeps_input ? cell_.input : 0), n));
        Drop(input);
        return Keep(SaturatingAdd(stash, last_ ? output : 0));
      case Op::kSendActivation:
        ++sent_down_;
        return Drop(output);
      case Op::kLoadTarget:
        return KeepArrived(Times(target_bytes, n));
      case Op::kLoss:  // the gradient of the logits takes their place
        return Drop(Times(target_bytes, n));
      case Op::kReceiveGradient:
        ++answered_;  // that activation's copy has run
        return KeepArrived(output);
      case Op::kBackward:
      case Op::kBackwardInput:
        Note(Times(cell_.backward_peak - cell_.stash - cell_.output, n));
        Drop(output);
        if (op == Op::kBackward) Drop(stash);
        if (program_.stage.value > 0) Keep(input);  // the input gradient is of the input's size
        return;
      case Op::kBackwardWeight:
        return Drop(stash);
      case Op::kSendGradient:
        ++sent_up_;
        return Drop(input);
    }
  }

  const StageProgram& program_;
  const CellBytes& cell_;
  const StageMemoryQuery& query_;
  std::vector<bool> recomputed_;
  int64_t to_receive_ = 0;
  int64_t sent_down_ = 0, answered_ = 0, sent_up_ = 0;  // messages
  std::deque<int64_t> ahead_;                           // bytes
  bool last_ = false;
  int64_t alive_ = 0;
  int64_t peak_ = 0;
};

}  // namespace

StageMemory ForecastStageMemory(const ExpandedModel& model, const StageProgram& program,
                                const StageMemoryQuery& query) {
  const int layers = static_cast<int>(model.layers.size());
  CHECK(0 <= query.first_layer && query.first_layer < query.last_layer &&
        query.last_layer <= layers)
      << "layers [" << query.first_layer << ", " << query.last_layer << ") of " << layers;
  const std::vector<LayerCost> costs = ModelCosts(model);
  int64_t parameters = 0;
  for (int i = query.first_layer; i < query.last_layer; ++i) parameters += costs[i].parameters;
  const DType dtype = ComputeDType(model.precision);
  const int64_t copy = dtype == DType::kF32 ? 0 : DTypeSize(dtype);  // that operations read
  StageMemory memory;
  memory.parameters = parameters * (kFloatBytes + copy);
  memory.gradients = parameters * kFloatBytes;
  memory.optimizer =
      static_cast<int64_t>(OptimizerSlots(query.optimizer).size()) * parameters * kFloatBytes;
  const CellBytes cell = BytesOfCell(model, costs, query.first_layer, query.last_layer);
  memory.activations = ProgramWalk(program, cell, query).Peak(model.context * kIdBytes);
  if (query.card) {
    const int64_t attention =
        query.card->attention
            ? AttentionWorkspaceBytes(*query.card->attention, model, query.first_layer,
                                      query.last_layer, query.batch_size, query.micro_batches)
            : 0;
    memory.activations =
        SaturatingAdd(memory.activations, SaturatingAdd(kCardWorkspaceBytes, attention));
  }
  return memory;
}

}  // namespace stagecoach
