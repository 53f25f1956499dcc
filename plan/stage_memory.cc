// ForecastStageMemory: walks a stage's program and keeps books of what is alive.
#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "network/cell_memory.h"
#include "network/cost.h"
#include "plan/card_memory.h"
#include "plan/cost_model.h"
#include "plan/optimizer_slots.h"
#include "plan/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloatBytes = 4;

class ProgramWalk {
 public:
  ProgramWalk(const StageProgram& program, const CellMemory& cell, const StageMemoryQuery& query)
      : program_(program), cell_(cell), query_(query), recomputed_(query.micro_batches, false) {
    for (const Instruction& instruction : program.instructions) {
      if (instruction.op == Op::kReceiveActivation) ++to_receive_;
      if (instruction.op == Op::kLoss) last_ = true;
      if (instruction.op == Op::kBackward || instruction.op == Op::kBackwardWeight) {
        backward_ = true;
      }
      if (instruction.op == Op::kRecompute) recomputed_[instruction.micro_batch.value] = true;
    }
  }

  // target: what the loss reads of the data source, of one sample.
  int64_t Peak(int64_t target) {
    for (const Instruction& instruction : program_.instructions) {
      const int m = instruction.micro_batch.value;
      Execute(instruction.op, m, MicroBatchSize(query_.batch_size, query_.micro_batches, m),
              target);
    }
    return peak_;
  }

 private:
  static int64_t Times(int64_t bytes, int64_t samples) {
    return SaturatingMultiply(bytes, samples);
  }
  static int64_t Sum(const std::vector<int64_t>& tuple) {
    return std::accumulate(tuple.begin(), tuple.end(), int64_t{0});
  }
  // Alive now, and for a moment `transient` more.
  void Note(int64_t transient) {
    const int64_t at_links = query_.card ? Staged() : InLink();
    peak_ = std::max(peak_, SaturatingAdd(SaturatingAdd(alive_, at_links), transient));
  }
  int64_t InLink() const {
    return to_receive_ > 0 ? Times(Sum(cell_.received), LargestMicroBatch()) : 0;
  }
  // What copies to links still read, and what is taken ahead for those from links.
  int64_t Staged() const {
    const auto held = [this](int64_t bytes, int64_t sent) {
      return Times(Times(bytes, LargestMicroBatch()), std::min<int64_t>(sent, kCardOutbox));
    };
    int64_t bytes = SaturatingAdd(held(cell_.sent, sent_down_ - answered_),
                                  held(cell_.sent_gradients, sent_up_));
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
  void KeepArrived(const std::vector<int64_t>& tuple, int64_t samples) {
    for (const int64_t bytes : tuple) KeepArrived(Times(bytes, samples));
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

  void Execute(Op op, int m, int64_t n, int64_t target) {
    const int64_t stash = SaturatingAdd(Times(cell_.stash, n), cell_.stash_once);
    switch (op) {
      case Op::kReceiveActivation:
        --to_receive_;
        return KeepArrived(cell_.received, n);
      case Op::kLoadInput:
        return KeepArrived(cell_.loaded, n);
      case Op::kForward:
        return Forward(m, n);
      case Op::kRecompute:
        Note(SaturatingAdd(Times(cell_.recompute - cell_.read, n), cell_.stash_once));
        Drop(Times(cell_.read, n));
        return Keep(SaturatingAdd(stash, last_ ? Times(cell_.sent_beside_stash, n) : 0));
      case Op::kSendActivation:
        ++sent_down_;
        return Drop(Times(recomputed_[m] ? cell_.sent_beside_read : cell_.sent_beside_stash, n));
      case Op::kLoadTarget:
        return KeepArrived(Times(target, n));
      case Op::
          kLoss:  // the gradient of the logits takes their place, unless the backward reads them
        Keep(Times(Sum(cell_.received_gradients) - cell_.sent_beside_stash, n));
        return Drop(Times(target, n));
      case Op::kReceiveGradient:
        ++answered_;  // that activation's copy has run
        return KeepArrived(cell_.received_gradients, n);
      case Op::kBackward:
      case Op::kBackwardInput: {
        const int64_t gradients = Sum(cell_.received_gradients);
        Note(Times(cell_.backward - cell_.stash - gradients, n));
        Drop(Times(gradients, n));
        if (op == Op::kBackward) Drop(stash);
        return Keep(Times(cell_.sent_gradients, n));
      }
      case Op::kBackwardWeight:
        return Drop(stash);
      case Op::kSendGradient:
        ++sent_up_;
        return Drop(Times(cell_.sent_gradients, n));
    }
  }

  void Forward(int m, int64_t n) {
    const int64_t inputs = Sum(cell_.loaded) + Sum(cell_.received);
    if (!backward_) {  // the same, and there is no stash: only what statistics are folded from, at once
      Note(Times(cell_.kept - inputs, n));
      Drop(Times(inputs, n));
      return Keep(Times(cell_.sent_beside_stash, n));
    }
    if (!recomputed_[m]) {
      Note(SaturatingAdd(Times(cell_.kept - inputs, n), cell_.stash_once));
      Drop(Times(inputs, n));  // the stash is what is left of them
      return Keep(SaturatingAdd(Times(cell_.stash + cell_.sent_beside_stash, n), cell_.stash_once));
    }
    if (!last_) Note(Times(cell_.forward - inputs, n));
    Drop(Times(inputs, n));
    // The last stage computes when it recomputes.
    Keep(Times(cell_.read + (last_ ? 0 : cell_.sent_beside_read), n));
  }

  const StageProgram& program_;
  const CellMemory& cell_;
  const StageMemoryQuery& query_;
  std::vector<bool> recomputed_;
  int64_t to_receive_ = 0;
  int64_t sent_down_ = 0, answered_ = 0, sent_up_ = 0;  // messages
  std::deque<int64_t> ahead_;                           // bytes
  bool last_ = false;
  bool backward_ = false;
  int64_t alive_ = 0;
  int64_t peak_ = 0;
};

}  // namespace

StageMemory ForecastStageMemory(const Network& model, const StageProgram& program,
                                const StageMemoryQuery& query) {
  const int layers = static_cast<int>(model.layers.size());
  CHECK(0 <= query.first_layer && query.first_layer < query.last_layer &&
        query.last_layer <= layers)
      << "layers [" << query.first_layer << ", " << query.last_layer << ") of " << layers;
  int64_t parameters = 0, gradients = 0, trained = 0, states = 0;  // elements
  int64_t accumulators = 0;                                        // bytes
  for (int i = query.first_layer; i < query.last_layer; ++i) {
    const NetworkLayer& layer = model.layers[i];
    for (size_t k = 0; k < layer.parameters.size(); ++k) {
      const int64_t elements = layer.parameters[k].shape.elements();
      parameters += elements;
      if (layer.parameters[k].trained) trained += elements;
      if (layer.lists->parameter_gradients[k].valid()) gradients += elements;
    }
    for (const StateSpec& state : layer.states) states += state.shape.elements();
    accumulators += AccumulatorBytes(*layer.lists);
  }
  const DType dtype = ComputeDType(model.precision);
  const int64_t copy = dtype == DType::kF32 ? 0 : DTypeSize(dtype);  // that operations read
  StageMemory memory;
  memory.parameters = parameters * (kFloatBytes + copy) + states * kFloatBytes;
  memory.gradients = gradients * kFloatBytes + accumulators;
  memory.optimizer =
      static_cast<int64_t>(OptimizerSlots(query.optimizer).size()) * trained * kFloatBytes;
  const CellMemory cell = MemoryOfCell(model, query.first_layer, query.last_layer);
  memory.activations =
      ProgramWalk(program, cell, query).Peak(TypeBytes(model.objective.target_type, 1, dtype));
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
