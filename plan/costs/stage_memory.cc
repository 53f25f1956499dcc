// ForecastStageMemory: walks a stage's program and keeps books of what is alive.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "network/lists/cost.h"
#include "network/memory/cell_memory.h"
#include "network/passes/padded_output.h"
#include "network/passes/tied.h"
#include "plan/costs/card_memory.h"
#include "plan/costs/cost_model.h"
#include "plan/costs/link_memory.h"
#include "plan/costs/saturate.h"
#include "plan/job/optimizer_slots.h"
#include "plan/schedules/pipeline_walk.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloatBytes = 4;

// The head goes by chunks on this stage.
bool HasChunkedHead(const Network& network, const StageMemoryQuery& query) {
  return query.card.has_value() && query.last_layer == static_cast<int>(network.layers.size()) &&
         HeadGoesByChunks(network);
}

// A cell's memory by the number of samples. Where that would be beyond 64 bits it is that of fewer
// samples, and `scale` says of how many times fewer: more than any machine has in any case.
class MemoryBySamples {
 public:
  MemoryBySamples(const Network& network, const StageMemoryQuery& query, bool chunked_head,
                  int64_t most)
      : network_(network), query_(query), chunked_head_(chunked_head) {
    const CellMemory& one = Of(1);
    const int64_t bytes = std::max({one.backward, one.kept, one.forward, one.recompute, one.stash,
                                    one.sent, one.input_part, one.weight_part, one.for_weights});
    while (most / scale_ > kMostBytes / std::max<int64_t>(bytes, 1)) scale_ *= 2;
    known_.clear();
  }
  const CellMemory& Of(int64_t samples) {
    const auto [found, is_new] = known_.try_emplace(samples);
    if (is_new && samples > 0) {  // an empty micro-batch has nothing
      const int64_t fewer = std::max<int64_t>(samples / scale_, 1);
      found->second = chunked_head_
                          ? MemoryInFrontOfHead(network_, query_.first_layer, fewer)
                          : MemoryOfCell(network_, query_.first_layer, query_.last_layer, fewer);
    }
    return found->second;
  }
  int64_t scale() const { return scale_; }

 private:
  static constexpr int64_t kMostBytes = int64_t{1} << 58;
  const Network& network_;
  const StageMemoryQuery& query_;
  const bool chunked_head_;
  int64_t scale_ = 1;
  std::map<int64_t, CellMemory> known_;
};

// Of messages of tied parameters.
struct TiedBytes {
  std::vector<int64_t> received_values, received_gradients;
  int64_t passed_values = 0, passed_gradients = 0;  // those that only go on to the next stage
};

class ProgramWalk {
 public:
  // programs: of all stages.
  ProgramWalk(std::span<const StageProgram> programs, int stage, bool evaluation,
              const Network& network, const TiedBytes& tied, const StageMemoryQuery& query)
      : program_(programs[static_cast<size_t>(stage)]),
        network_(network),
        evaluation_(evaluation),
        tied_(tied),
        query_(query),
        chunked_head_(HasChunkedHead(network, query)),
        memory_(network, query, chunked_head_, LargestMicroBatch()),
        recompute_ends_(query.micro_batches, 0),
        weight_ends_(query.micro_batches, 0) {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const auto [op, m] = program_.instructions[i];
      if (op == Opcode::kLoss) last_ = true;
      if (op == Opcode::kBackward || op == Opcode::kBackwardWeight) backward_ = true;
      if (op == Opcode::kRecompute) recompute_ends_[m.value] = i + 1;
      if (op == Opcode::kBackwardWeight) weight_ends_[m.value] = i + 1;
    }
    if (query.card) return;
    if (stage > 0) upstream_ = AtBoundary(programs[static_cast<size_t>(stage) - 1]);
    if (stage + 1 < static_cast<int>(programs.size())) {
      downstream_ = AtBoundary(programs[static_cast<size_t>(stage) + 1]);
    }
  }

  struct Result {
    int64_t bytes = 0;
    StageMoment moment;
  };
  // targets: what is loaded for the loss, of one sample.
  Result Peak(const std::vector<int64_t>& targets) {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const auto [op, m] = program_.instructions[i];
      // What a send or a receive moves is in the link no more, or only now.
      const bool moves = LinkEndOf(op, program_.stage.value).has_value();
      position_ = moves ? i + 1 : i;
      Execute(op, m.value, SamplesOf(m.value), targets);
      position_ = i + 1;
      if (!query_.card) Note(0);
    }
    return {peak_, moment_};
  }

 private:
  int64_t SamplesOf(int m) const {
    return MicroBatchSize(query_.batch_size, query_.micro_batches, m);
  }
  std::vector<LinkPeak> AtBoundary(const StageProgram& neighbour) {
    const int boundary = std::min(program_.stage.value, neighbour.stage.value);
    BoundaryMessages messages;
    for (const auto& [op, m] : program_.instructions) {
      const std::optional<LinkEnd> end = LinkEndOf(op, program_.stage.value);
      if (!end.has_value() || end->boundary != boundary) continue;
      const LinkMessage message = end->sends ? Sent(op, m.value) : Received(op, m.value);
      (end->sends ? messages.sent : messages.received).push_back(message);
    }
    return MostInLink(program_, neighbour, messages, query_.link_capacity);
  }
  LinkMessage Received(Opcode op, int m) {
    const CellMemory& cell = memory_.Of(SamplesOf(m));
    switch (op) {
      case Opcode::kReceiveActivation:
        return {Scaled(Sum(cell.received))};
      case Opcode::kReceiveGradient:
        return {Scaled(Sum(cell.received_gradients))};
      default:
        return {Sum(op == Opcode::kReceiveTiedValues ? tied_.received_values
                                                     : tied_.received_gradients)};
    }
  }
  // Of what is tied that which only goes on: the rest are the stage's own values and gradients.
  LinkMessage Sent(Opcode op, int m) {
    const CellMemory& cell = memory_.Of(SamplesOf(m));
    switch (op) {
      case Opcode::kSendActivation:
        if (evaluation_) return {Scaled(cell.sent)};
        if (!IsRecomputed(m)) return {Scaled(cell.sent_beside_stash)};
        return {Scaled(cell.sent_beside_read), recompute_ends_[m],
                Scaled(cell.sent_beside_recompute)};
      case Opcode::kSendGradient:
        if (!IsInTwoParts(m)) return {Scaled(cell.sent_gradients)};
        return {Scaled(cell.sent_beside_weights), weight_ends_[m], Scaled(cell.sent_gradients)};
      default:
        return {op == Opcode::kSendTiedValues ? tied_.passed_values : tied_.passed_gradients};
    }
  }
  bool IsRecomputed(int m) const { return recompute_ends_[m] > 0; }
  bool IsInTwoParts(int m) const { return weight_ends_[m] > 0; }
  int64_t Scaled(int64_t bytes) const { return SaturatingMultiply(bytes, memory_.scale()); }
  static int64_t Sum(const std::vector<int64_t>& tuple) {
    return std::accumulate(tuple.begin(), tuple.end(), int64_t{0});
  }
  // Alive now, and for a moment `transient` more.
  void Note(int64_t transient) {
    const LinkPeak up = At(upstream_), down = At(downstream_);
    const int64_t at_links = query_.card ? Staged() : SaturatingAdd(up.bytes, down.bytes);
    const int64_t bytes = SaturatingAdd(SaturatingAdd(alive_, at_links), transient);
    if (bytes <= peak_) return;
    peak_ = bytes;
    moment_ = {evaluation_, position_, up.neighbour, down.neighbour};
  }
  LinkPeak At(const std::vector<LinkPeak>& boundary) const {
    return boundary.empty() ? LinkPeak() : boundary[position_];
  }
  // What copies to links still read, and what is taken ahead for those from links.
  int64_t Staged() {
    const auto held = [this](int64_t bytes, int64_t sent) {
      return SaturatingMultiply(Scaled(bytes), std::min<int64_t>(sent, kCardOutbox));
    };
    const CellMemory& cell = memory_.Of(LargestMicroBatch());
    int64_t bytes =
        SaturatingAdd(held(cell.sent, sent_down_ - answered_), held(cell.sent_gradients, sent_up_));
    for (const int64_t ahead : ahead_) bytes = SaturatingAdd(bytes, ahead);
    return bytes;
  }
  // Ids too are copied to a card. The place of the next message is taken with this one's, unless
  // there is one of its size, which this one leaves free.
  void KeepArrived(int64_t bytes) {
    Keep(bytes);
    if (!query_.card || std::find(ahead_.begin(), ahead_.end(), bytes) != ahead_.end()) return;
    if (ahead_.size() == kCardAhead) ahead_.pop_front();
    ahead_.push_back(bytes);
    Note(0);
  }
  void KeepArrived(const std::vector<int64_t>& tuple) {
    for (const int64_t bytes : tuple) KeepArrived(Scaled(bytes));
  }
  // What is rounded is there in both types for a moment.
  void KeepLoaded(const CellMemory& cell) {
    for (size_t i = 0; i < cell.loaded.size(); ++i) {
      KeepArrived(Scaled(cell.loaded[i]));
      Note(Scaled(cell.rounded[i]));
    }
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

  void Execute(Opcode op, int m, int64_t n, const std::vector<int64_t>& targets) {
    const CellMemory& cell = memory_.Of(n);
    const int64_t stash = Scaled(cell.stash);
    switch (op) {
      case Opcode::kReceiveActivation:
        return KeepArrived(cell.received);
      case Opcode::kLoadInput:
        return KeepLoaded(cell);
      case Opcode::kForward:
        return Forward(m, cell);
      case Opcode::kRecompute:
        Note(Scaled(cell.recompute - cell.read));
        Drop(Scaled(cell.read));
        return Keep(SaturatingAdd(stash, last_ ? Scaled(cell.sent_beside_stash) : 0));
      case Opcode::kSendActivation:
        ++sent_down_;
        if (evaluation_) return Drop(Scaled(cell.sent));
        return Drop(Scaled(IsRecomputed(m) ? cell.sent_beside_read : cell.sent_beside_stash));
      case Opcode::kLoadTarget:
        for (const int64_t bytes : targets) KeepArrived(SaturatingMultiply(bytes, n));
        return;
      case Opcode::kLoss:
        NoteChunk(cell, n);
        // The gradient of the logits takes their place, unless the backward reads them.
        if (evaluation_) {
          Drop(Scaled(cell.sent));
        } else {
          Keep(Scaled(Sum(cell.received_gradients) - cell.sent_beside_stash));
        }
        return Drop(SaturatingMultiply(Sum(targets), n));
      case Opcode::kReceiveGradient:
        ++answered_;  // that activation's copy has run
        Drop(std::exchange(passing_, 0));
        return KeepArrived(cell.received_gradients);
      case Opcode::kBackward:
      case Opcode::kBackwardInput:
        return Backward(op, cell);
      case Opcode::kBackwardWeight:
        Note(Scaled(cell.weight_part - cell.for_weights));
        return Drop(Scaled(cell.for_weights));
      case Opcode::kSendGradient:
        ++sent_up_;
        return Drop(Scaled(IsInTwoParts(m) ? cell.sent_beside_weights : cell.sent_gradients));
      case Opcode::kReceiveTiedValues:
        for (const int64_t bytes : tied_.received_values) KeepArrived(bytes);
        return Drop(Sum(tied_.received_values) - tied_.passed_values);
      case Opcode::kSendTiedValues:
        // From a card a copy goes on, which may run as late as the first activation's.
        if (!query_.card) return Drop(tied_.passed_values);
        passing_ = tied_.passed_values;
        return;
      case Opcode::kReceiveTiedGradients:
        for (const int64_t bytes : tied_.received_gradients) KeepArrived(bytes);
        return;
      case Opcode::kAddTiedGradients:  // the parameter's own buffer takes them
        return;
      case Opcode::kSendTiedGradients:  // from a card copies go on
        if (!query_.card) Drop(Sum(tied_.received_gradients));
        return;
    }
  }

  // Where the head goes by chunks: beside what it reads the whole gradient of that, and logits of a
  // chunk.
  void NoteChunk(const CellMemory& cell, int64_t n) {
    if (n == 0 || !chunked_head_) return;
    const int64_t gradient = evaluation_ ? 0 : Scaled(Sum(cell.received_gradients));
    Note(SaturatingAdd(gradient, HeadChunkBytes(network_, query_.head_chunks, n, evaluation_)));
  }

  // The gradient of the inputs leaves before the weights' part begins, in every schedule that there
  // is.
  void Backward(Opcode op, const CellMemory& cell) {
    const bool whole = op == Opcode::kBackward;
    const int64_t before = cell.stash + Sum(cell.received_gradients);
    Note(Scaled((whole ? cell.backward : cell.input_part) - before));
    Drop(Scaled(before));
    Keep(Scaled(whole ? cell.sent_gradients : cell.for_weights + cell.sent_beside_weights));
  }

  void Forward(int m, const CellMemory& cell) {
    const int64_t inputs = Sum(cell.loaded) + Sum(cell.received);
    if (evaluation_) {
      Note(Scaled(cell.evaluation - inputs));
      Drop(Scaled(inputs));
      return Keep(Scaled(cell.sent));
    }
    if (!backward_) {  // the same, and there is no stash: only what statistics are folded from, at once
      Note(Scaled(cell.kept - inputs));
      Drop(Scaled(inputs));
      return Keep(Scaled(cell.sent_beside_stash));
    }
    if (!IsRecomputed(m)) {
      Note(Scaled(cell.kept - inputs));
      Drop(Scaled(inputs));  // the stash is what is left of them
      return Keep(Scaled(cell.stash + cell.sent_beside_stash));
    }
    if (!last_) Note(Scaled(cell.forward - inputs));
    Drop(Scaled(inputs));
    // The last stage computes when it recomputes.
    Keep(Scaled(cell.read + (last_ ? 0 : cell.sent_beside_read)));
  }

  const StageProgram& program_;
  const Network& network_;
  const bool evaluation_;
  const TiedBytes tied_;
  const StageMemoryQuery& query_;
  const bool chunked_head_;
  MemoryBySamples memory_;
  std::vector<size_t> recompute_ends_;  // by micro-batch, a position; 0: it is not recomputed
  std::vector<size_t> weight_ends_;     // the same of a weights' part that comes by itself
  std::vector<LinkPeak> upstream_,
      downstream_;  // by position; empty: there is none, or its memory is not ours
  size_t position_ = 0;
  int64_t passing_ = 0;  // bytes of tied values that a copy to a link may still read
  int64_t sent_down_ = 0, answered_ = 0, sent_up_ = 0;  // messages
  std::deque<int64_t> ahead_;                           // bytes
  bool last_ = false;
  bool backward_ = false;
  int64_t alive_ = 0;
  int64_t peak_ = 0;
  StageMoment moment_;
};

// Owners in front of the cell that have a user in it, which share one copy of the value.
std::vector<ParameterUse> CopiedValues(const Network& network, int first, int last) {
  std::vector<ParameterUse> copied;
  for (const TiedParameter& tied : TiedParameters(network)) {
    if (tied.owner.layer >= first) continue;
    const bool used = std::any_of(
        tied.users.begin(), tied.users.end(),
        [&](const ParameterUse& use) { return first <= use.layer && use.layer < last; });
    if (used) copied.push_back(tied.owner);
  }
  return copied;
}

TiedBytes TiedBytesOf(const Network& network, int first, int last) {
  const CellTies ties = TiesOfCell(network, first, last);
  const std::vector<ParameterUse> copied = CopiedValues(network, first, last);
  std::vector<ParameterUse> passed;
  for (const ParameterUse& owner : ties.received_values) {
    if (std::find(copied.begin(), copied.end(), owner) == copied.end()) passed.push_back(owner);
  }
  std::vector<ParameterUse> passed_up;
  for (const ParameterUse& user : ties.sent_gradients) {
    if (user.layer >= last) passed_up.push_back(user);
  }
  TiedBytes bytes{.passed_values = ValueBytes(network, passed),
                  .passed_gradients = GradientBytes(network, passed_up)};
  for (const ParameterUse& owner : ties.received_values) {
    bytes.received_values.push_back(ValueBytes(network, {owner}));
  }
  for (const ParameterUse& user : ties.received_gradients) {
    bytes.received_gradients.push_back(GradientBytes(network, {user}));
  }
  return bytes;
}

}  // namespace

StageMemory ForecastStageMemory(const Network& network, std::span<const StageProgram> programs,
                                int stage, const StageMemoryQuery& query) {
  const size_t stages = std::max(programs.size(), query.evaluation.size());
  CHECK(0 <= stage && stage < static_cast<int>(stages)) << "stage " << stage << " of " << stages;
  const int layers = static_cast<int>(network.layers.size());
  CHECK(0 <= query.first_layer && query.first_layer < query.last_layer &&
        query.last_layer <= layers)
      << "layers [" << query.first_layer << ", " << query.last_layer << ") of " << layers;
  int64_t parameters = 0, gradients = 0, trained = 0, states = 0;  // elements
  int64_t accumulators = 0;                                        // bytes
  for (int i = query.first_layer; i < query.last_layer; ++i) {
    const NetworkLayer& layer = network.layers[i];
    for (size_t k = 0; k < layer.parameters.size(); ++k) {
      const ParameterSpec& parameter = layer.parameters[k];
      const int64_t elements = parameter.shape.elements();
      if (!parameter.tied()) {
        parameters += elements;
        if (parameter.trained) trained += elements;
      }
      if (layer.lists->parameter_gradients[k].valid()) gradients += elements;
    }
    for (const StateSpec& state : layer.states) states += state.shape.elements();
    accumulators += AccumulatorBytes(*layer.lists);
  }
  const DType dtype = ComputeDType(network.precision);
  const int64_t copy = dtype == DType::kF32 ? 0 : DTypeSize(dtype);  // that operations read
  StageMemory memory;
  memory.parameters = parameters * (kFloatBytes + copy) + states * kFloatBytes;
  memory.parameters +=
      ValueBytes(network, CopiedValues(network, query.first_layer, query.last_layer));
  memory.gradients = gradients * kFloatBytes + accumulators;
  const auto slots = static_cast<int64_t>(OptimizerSlots(query.optimizer).size());
  const int64_t averaged = query.average ? trained + states : 0;
  memory.optimizer = (slots * trained + averaged) * kFloatBytes;
  std::vector<int64_t> targets;
  for (const ValueType& type : network.objective.loaded()) {
    targets.push_back(TypeBytes(type, 1, dtype));
  }
  const TiedBytes tied = TiedBytesOf(network, query.first_layer, query.last_layer);
  for (const bool evaluation : {false, true}) {
    const std::span<const StageProgram> walked = evaluation ? query.evaluation : programs;
    if (walked.empty()) continue;
    const ProgramWalk::Result result =
        ProgramWalk(walked, stage, evaluation, network, tied, query).Peak(targets);
    if (evaluation && result.bytes <= memory.activations) continue;
    memory.activations = result.bytes;
    memory.fullest = result.moment;
  }
  if (query.card) {
    const int64_t attention =
        query.card->attention
            ? AttentionWorkspaceBytes(*query.card->attention, network, query.first_layer,
                                      query.last_layer, query.batch_size, query.micro_batches)
            : 0;
    memory.activations =
        SaturatingAdd(memory.activations, SaturatingAdd(kCardWorkspaceBytes, attention));
    if (!HasChunkedHead(network, query)) {  // a chunk has its own
      memory.activations = SaturatingAdd(
          memory.activations,
          PaddingBytes(network, query.first_layer, query.last_layer, query.batch_size));
    }
  }
  return memory;
}

}  // namespace stagecoach
