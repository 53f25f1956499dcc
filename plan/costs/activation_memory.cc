#include "plan/costs/activation_memory.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/numbers/saturate.h"
#include "network/lists/cost.h"
#include "network/memory/cell_memory.h"
#include "plan/costs/card_memory.h"
#include "plan/costs/link_memory.h"
#include "plan/schedules/pipeline_walk.h"

namespace stagecoach {
namespace {

int64_t TupleBytes(const std::vector<int64_t>& tuple) {
  return std::accumulate(tuple.begin(), tuple.end(), int64_t{0});
}

// A cell's memory by the number of samples. Where that would be beyond 64 bits it is that of fewer
// samples, and `scale` says of how many times fewer: more than any machine has in any case.
class MemoryBySamples {
 public:
  MemoryBySamples(const Network& network, const StageMemoryQuery& query, int64_t most)
      : network_(network), query_(query), chunked_head_(HasChunkedHead(network, query)) {
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

// The sizes of what a program keeps and sends.
class ProgramSizes {
 public:
  ProgramSizes(const StageProgram& program, bool evaluation, const Network& network,
               const TiedBytes& tied, const StageMemoryQuery& query)
      : evaluation_(evaluation),
        tied_(tied),
        query_(query),
        memory_(network, query, SamplesOf(0)),
        recompute_ends_(query.micro_batches, 0),
        weight_ends_(query.micro_batches, 0) {
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const auto [op, m] = program.instructions[i];
      if (op == Opcode::kRecompute) recompute_ends_[m.value] = i + 1;
      if (op == Opcode::kBackwardWeight) weight_ends_[m.value] = i + 1;
    }
  }

  int64_t SamplesOf(int m) const {  // the first micro-batch is the largest
    return MicroBatchSize(query_.batch_size, query_.micro_batches, m);
  }
  const CellMemory& Of(int m) { return memory_.Of(SamplesOf(m)); }
  bool IsRecomputed(int m) const { return recompute_ends_[m] > 0; }
  bool IsInTwoParts(int m) const { return weight_ends_[m] > 0; }
  int64_t Scaled(int64_t bytes) const { return SaturatingMultiply(bytes, memory_.scale()); }
  LinkMessage Received(Opcode op, int m) {
    const CellMemory& cell = Of(m);
    switch (op) {
      case Opcode::kReceiveActivation:
        return {Scaled(TupleBytes(cell.received))};
      case Opcode::kReceiveGradient:
        return {Scaled(TupleBytes(cell.received_gradients))};
      default:
        return {TupleBytes(op == Opcode::kReceiveTiedValues ? tied_.received_values
                                                            : tied_.received_gradients)};
    }
  }
  // Of what is tied that which only goes on: the rest are the stage's own values and gradients.
  LinkMessage Sent(Opcode op, int m) {
    const CellMemory& cell = Of(m);
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

 private:
  const bool evaluation_;
  const TiedBytes& tied_;
  const StageMemoryQuery& query_;
  MemoryBySamples memory_;
  std::vector<size_t> recompute_ends_;  // by micro-batch, a position; 0: it is not recomputed
  std::vector<size_t> weight_ends_;     // the same of a weights' part that comes by itself
};

// The memory on a card of copies to and from links, each as late as it may be.
class CardCopies {
 public:
  // Of the largest tuples that go out.
  CardCopies(int64_t activation_bytes, int64_t gradient_bytes)
      : activation_bytes_(activation_bytes), gradient_bytes_(gradient_bytes) {}

  void SendActivations() { ++sent_down_; }
  void SendGradients() { ++sent_up_; }
  void Answer() { ++answered_; }  // a gradient is here: that activation's copy has run
  // Ids too are copied to a card. The place of the next message is taken with this one's, unless
  // there is one of its size, which this one leaves free.
  void Arrive(int64_t bytes) {
    if (std::find(ahead_.begin(), ahead_.end(), bytes) != ahead_.end()) return;
    if (ahead_.size() == kCardAhead) ahead_.pop_front();
    ahead_.push_back(bytes);
  }
  int64_t Bytes() const {
    int64_t bytes = SaturatingAdd(Held(activation_bytes_, sent_down_ - answered_),
                                  Held(gradient_bytes_, sent_up_));
    for (const int64_t ahead : ahead_) bytes = SaturatingAdd(bytes, ahead);
    return bytes;
  }

 private:
  static int64_t Held(int64_t bytes, int64_t sent) {
    return SaturatingMultiply(bytes, std::min<int64_t>(sent, kCardOutbox));
  }

  const int64_t activation_bytes_, gradient_bytes_;
  int64_t sent_down_ = 0, answered_ = 0, sent_up_ = 0;  // messages
  std::deque<int64_t> ahead_;                           // bytes
};

// Keeps books of the bytes that are alive while a program goes on.
class ProgramWalk {
 public:
  ProgramWalk(std::span<const StageProgram> programs, int stage, bool evaluation,
              const Network& network, const TiedBytes& tied, const StageMemoryQuery& query)
      : program_(programs[static_cast<size_t>(stage)]),
        network_(network),
        evaluation_(evaluation),
        tied_(tied),
        query_(query),
        chunked_head_(HasChunkedHead(network, query)),
        sizes_(program_, evaluation, network, tied, query) {
    for (const auto& [op, m] : program_.instructions) {
      if (op == Opcode::kLoss) last_ = true;
      if (op == Opcode::kBackward || op == Opcode::kBackwardWeight) backward_ = true;
    }
    for (const ValueType& type : network.objective.loaded()) {
      targets_.push_back(TypeBytes(type, 1, ComputeDType(network.precision)));
    }
    if (query.card) {
      const CellMemory& largest = sizes_.Of(0);
      copies_.emplace(Scaled(largest.sent), Scaled(largest.sent_gradients));
      return;
    }
    if (stage > 0) upstream_ = AtBoundary(programs[static_cast<size_t>(stage) - 1]);
    if (stage + 1 < static_cast<int>(programs.size())) {
      downstream_ = AtBoundary(programs[static_cast<size_t>(stage) + 1]);
    }
  }

  ActivationPeak Peak() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const auto [op, m] = program_.instructions[i];
      // What a send or a receive moves is in the link no more, or only now.
      const bool moves = LinkEndOf(op, program_.stage.value).has_value();
      position_ = moves ? i + 1 : i;
      Execute(op, m.value);
      position_ = i + 1;
      if (!copies_) Note(0);
    }
    return {peak_, moment_};
  }

 private:
  std::vector<LinkPeak> AtBoundary(const StageProgram& neighbour) {
    const int boundary = std::min(program_.stage.value, neighbour.stage.value);
    BoundaryMessages messages;
    for (const auto& [op, m] : program_.instructions) {
      const std::optional<LinkEnd> end = LinkEndOf(op, program_.stage.value);
      if (!end.has_value() || end->boundary != boundary) continue;
      const LinkMessage message =
          end->sends ? sizes_.Sent(op, m.value) : sizes_.Received(op, m.value);
      (end->sends ? messages.sent : messages.received).push_back(message);
    }
    return MostInLink(program_, neighbour, messages, query_.link_capacity);
  }
  int64_t Scaled(int64_t bytes) const { return sizes_.Scaled(bytes); }
  // Alive now, and for a moment `transient` more.
  void Note(int64_t transient) {
    const LinkPeak up = At(upstream_), down = At(downstream_);
    const int64_t at_links = copies_ ? copies_->Bytes() : SaturatingAdd(up.bytes, down.bytes);
    const int64_t bytes = SaturatingAdd(SaturatingAdd(alive_, at_links), transient);
    if (bytes <= peak_) return;
    peak_ = bytes;
    moment_ = {evaluation_, position_, up.neighbour, down.neighbour};
  }
  LinkPeak At(const std::vector<LinkPeak>& boundary) const {
    return boundary.empty() ? LinkPeak() : boundary[position_];
  }
  void KeepArrived(int64_t bytes) {
    Keep(bytes);
    if (!copies_) return;
    copies_->Arrive(bytes);
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

  void Execute(Opcode op, int m) {
    const int64_t n = sizes_.SamplesOf(m);
    const CellMemory& cell = sizes_.Of(m);
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
        return Keep(SaturatingAdd(Scaled(cell.stash), last_ ? Scaled(cell.sent_beside_stash) : 0));
      case Opcode::kSendActivation:
        if (copies_) copies_->SendActivations();
        if (evaluation_) return Drop(Scaled(cell.sent));
        return Drop(
            Scaled(sizes_.IsRecomputed(m) ? cell.sent_beside_read : cell.sent_beside_stash));
      case Opcode::kLoadTarget:
        for (const int64_t bytes : targets_) KeepArrived(SaturatingMultiply(bytes, n));
        return;
      case Opcode::kLoss:
        NoteChunk(cell, n);
        // The gradient of the logits takes their place, unless the backward reads them.
        if (evaluation_) {
          Drop(Scaled(cell.sent));
        } else {
          Keep(Scaled(TupleBytes(cell.received_gradients) - cell.sent_beside_stash));
        }
        return Drop(SaturatingMultiply(TupleBytes(targets_), n));
      case Opcode::kReceiveGradient:
        if (copies_) copies_->Answer();
        Drop(std::exchange(passing_, 0));
        return KeepArrived(cell.received_gradients);
      case Opcode::kBackward:
      case Opcode::kBackwardInput:
        return Backward(op, cell);
      case Opcode::kBackwardWeight:
        Note(Scaled(cell.weight_part - cell.for_weights));
        return Drop(Scaled(cell.for_weights));
      case Opcode::kSendGradient:
        if (copies_) copies_->SendGradients();
        return Drop(
            Scaled(sizes_.IsInTwoParts(m) ? cell.sent_beside_weights : cell.sent_gradients));
      case Opcode::kReceiveTiedValues:
        for (const int64_t bytes : tied_.received_values) KeepArrived(bytes);
        return Drop(TupleBytes(tied_.received_values) - tied_.passed_values);
      case Opcode::kSendTiedValues:
        // From a card a copy goes on, which may run as late as the first activation's.
        if (!copies_) return Drop(tied_.passed_values);
        passing_ = tied_.passed_values;
        return;
      case Opcode::kReceiveTiedGradients:
        for (const int64_t bytes : tied_.received_gradients) KeepArrived(bytes);
        return;
      case Opcode::kAddTiedGradients:  // the parameter's own buffer takes them
        return;
      case Opcode::kSendTiedGradients:  // from a card copies go on
        if (!copies_) Drop(TupleBytes(tied_.received_gradients));
        return;
    }
  }

  // Where the head goes by chunks: beside what it reads the whole gradient of that, and logits of a
  // chunk.
  void NoteChunk(const CellMemory& cell, int64_t n) {
    if (n == 0 || !chunked_head_) return;
    const int64_t gradient = evaluation_ ? 0 : Scaled(TupleBytes(cell.received_gradients));
    Note(SaturatingAdd(gradient, HeadChunkBytes(network_, query_.head_chunks, n, evaluation_)));
  }

  // The gradient of the inputs leaves before the weights' part begins, in every schedule that there
  // is.
  void Backward(Opcode op, const CellMemory& cell) {
    const bool whole = op == Opcode::kBackward;
    const int64_t before = cell.stash + TupleBytes(cell.received_gradients);
    Note(Scaled((whole ? cell.backward : cell.input_part) - before));
    Drop(Scaled(before));
    Keep(Scaled(whole ? cell.sent_gradients : cell.for_weights + cell.sent_beside_weights));
  }

  void Forward(int m, const CellMemory& cell) {
    const int64_t inputs = TupleBytes(cell.loaded) + TupleBytes(cell.received);
    if (evaluation_ || !backward_ || !sizes_.IsRecomputed(m)) {
      Note(Scaled((evaluation_ ? cell.evaluation : cell.kept) - inputs));
      Drop(Scaled(inputs));  // the stash is what is left of them
      if (evaluation_) return Keep(Scaled(cell.sent));
      // Without a backward statistics are folded at once, and no stash stays.
      return Keep(Scaled((backward_ ? cell.stash : 0) + cell.sent_beside_stash));
    }
    if (!last_) Note(Scaled(cell.forward - inputs));
    Drop(Scaled(inputs));
    // The last stage computes when it recomputes.
    Keep(Scaled(cell.read + (last_ ? 0 : cell.sent_beside_read)));
  }

  const StageProgram& program_;
  const Network& network_;
  const bool evaluation_;
  const TiedBytes& tied_;
  const StageMemoryQuery& query_;
  const bool chunked_head_;
  ProgramSizes sizes_;
  std::vector<int64_t> targets_;      // loaded for the loss, of one sample
  std::optional<CardCopies> copies_;  // none: not on a card
  // By position; empty: there is none, or its memory is not ours.
  std::vector<LinkPeak> upstream_, downstream_;
  size_t position_ = 0;
  int64_t passing_ = 0;  // bytes of tied values that a copy to a link may still read
  bool last_ = false;
  bool backward_ = false;
  int64_t alive_ = 0;
  int64_t peak_ = 0;
  StageMoment moment_;
};

}  // namespace

bool HasChunkedHead(const Network& network, const StageMemoryQuery& query) {
  return query.card.has_value() && query.last_layer == static_cast<int>(network.layers.size()) &&
         HeadGoesByChunks(network);
}

ActivationPeak PeakOfActivations(const Network& network, std::span<const StageProgram> programs,
                                 int stage, bool evaluation, const TiedBytes& tied,
                                 const StageMemoryQuery& query) {
  return ProgramWalk(programs, stage, evaluation, network, tied, query).Peak();
}

}  // namespace stagecoach
