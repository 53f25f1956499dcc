#include "plan/costs/activation_memory.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/errors/check.h"
#include "base/numbers/saturate.h"
#include "network/lists/cost.h"
#include "network/memory/cell_memory.h"
#include "plan/costs/card_memory.h"
#include "plan/costs/link_memory.h"
#include "plan/schedules/pipeline_walk.h"

namespace stagecoach {
namespace {

bool IsChunkedHead(const Network& network, const StageMemoryQuery& query,
                   const LayerRange& layers) {
  return query.card.has_value() && layers.last == static_cast<int>(network.layers.size()) &&
         HeadGoesByChunks(network);
}

int64_t TupleBytes(const std::vector<int64_t>& tuple) {
  return std::accumulate(tuple.begin(), tuple.end(), int64_t{0});
}

// A cell's memory by the number of samples. Where that would be beyond 64 bits it is that of fewer
// samples, and `scale` says of how many times fewer: more than any machine has in any case.
class MemoryBySamples {
 public:
  MemoryBySamples(const Network& network, const LayerRange& layers, bool chunked_head, int64_t most)
      : network_(network), layers_(layers), chunked_head_(chunked_head) {
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
                          ? MemoryInFrontOfHead(network_, layers_.first, fewer)
                          : MemoryOfCell(network_, layers_.first, layers_.last, fewer);
    }
    return found->second;
  }
  int64_t scale() const { return scale_; }

 private:
  static constexpr int64_t kMostBytes = int64_t{1} << 58;
  const Network& network_;
  const LayerRange layers_;
  const bool chunked_head_;
  int64_t scale_ = 1;
  std::map<int64_t, CellMemory> known_;
};

// The sizes of what a program keeps and sends for one of its cells.
class ProgramSizes {
 public:
  ProgramSizes(const StageProgram& program, CellId cell, const LayerRange& layers,
               bool chunked_head, bool evaluation, const Network& network, const TiedBytes& tied,
               const StageMemoryQuery& query)
      : evaluation_(evaluation),
        tied_(tied),
        query_(query),
        memory_(network, layers, chunked_head, SamplesOf(0)),
        recompute_ends_(query.micro_batches, 0),
        weight_ends_(query.micro_batches, 0) {
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const auto [op, m, of] = program.instructions[i];
      if (of != cell) continue;
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

// What a walk knows of one of the stage's cells.
struct WalkedCell {
  CellId id;
  bool chunked_head;
  const TiedBytes& tied;
  ProgramSizes sizes;
  bool last = false, backward = false;
  // Of tuples that the next cell, or the one before, takes from this one on the same stage.
  bool hands_down = false, hands_up = false;
  std::optional<CardCopies> copies;  // none: not on a card
  // By position; empty: there is none, or its memory is not ours.
  std::vector<LinkPeak> upstream, downstream;
  int64_t passing = 0;  // bytes of tied values that a copy to a link may still read
};

// Keeps books of the bytes that are alive while a program goes on.
class ProgramWalk {
 public:
  ProgramWalk(std::span<const StageProgram> programs, int stage, bool evaluation,
              const Network& network, std::span<const TiedBytes> tied,
              const StageMemoryQuery& query)
      : programs_(programs),
        program_(programs[static_cast<size_t>(stage)]),
        network_(network),
        evaluation_(evaluation),
        query_(query) {
    const std::vector<int> cells = CellsOf(query.placement, stage);
    CHECK_EQ(cells.size(), query.cells.size()) << "cells of stage " << stage;
    for (size_t i = 0; i < cells.size(); ++i) AddCell(CellId(cells[i]), query.cells[i], tied[i]);
    for (const ValueType& type : network.objective.loaded()) {
      targets_.push_back(TypeBytes(type, 1, ComputeDType(network.precision)));
    }
    for (WalkedCell& cell : cells_) SetEdges(cell);
  }

  ActivationPeak Peak() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      // What a send or a receive moves is in the link no more, or only now.
      const bool moves = LinkEndOf(instruction).has_value();
      position_ = moves ? i + 1 : i;
      Execute(At(instruction.cell), instruction.op, instruction.micro_batch.value);
      position_ = i + 1;
      if (!query_.card) Note(0);
    }
    return {peak_, moment_};
  }

 private:
  void AddCell(CellId id, const LayerRange& layers, const TiedBytes& tied) {
    const bool chunked = IsChunkedHead(network_, query_, layers);
    cells_.push_back({.id = id,
                      .chunked_head = chunked,
                      .tied = tied,
                      .sizes = ProgramSizes(program_, id, layers, chunked, evaluation_, network_,
                                            tied, query_)});
    WalkedCell& cell = cells_.back();
    for (const auto& [op, m, of] : program_.instructions) {
      if (of != id) continue;
      if (op == Opcode::kLoss) cell.last = true;
      if (op == Opcode::kBackward || op == Opcode::kBackwardWeight) cell.backward = true;
    }
  }

  // An end of the network, a neighbour of the same stage, or one of another.
  void SetEdges(WalkedCell& cell) {
    if (query_.card) {
      const CellMemory& largest = cell.sizes.Of(0);
      cell.copies.emplace(cell.sizes.Scaled(largest.sent),
                          cell.sizes.Scaled(largest.sent_gradients));
    }
    const int id = cell.id.value;
    const int cells = query_.placement.empty() ? static_cast<int>(programs_.size())
                                               : static_cast<int>(query_.placement.size());
    cell.hands_up = id > 0 && IsHere(id - 1);
    cell.hands_down = id + 1 < cells && IsHere(id + 1);
    if (query_.card) return;
    if (id > 0 && !cell.hands_up) cell.upstream = AtEdge(cell, id - 1, id - 1);
    if (id + 1 < cells && !cell.hands_down) cell.downstream = AtEdge(cell, id, id + 1);
  }
  bool IsHere(int cell) const { return StageOf(query_.placement, cell) == program_.stage.value; }

  std::vector<LinkPeak> AtEdge(WalkedCell& cell, int edge, int other) {
    BoundaryMessages messages;
    for (const Instruction& instruction : program_.instructions) {
      const std::optional<LinkEnd> end = LinkEndOf(instruction);
      if (!end.has_value() || end->edge != edge) continue;
      const int m = instruction.micro_batch.value;
      (end->sends ? messages.sent : messages.received)
          .push_back(end->sends ? cell.sizes.Sent(instruction.op, m)
                                : cell.sizes.Received(instruction.op, m));
    }
    const StageProgram& neighbour =
        programs_[static_cast<size_t>(StageOf(query_.placement, other))];
    return MostInLink(program_, neighbour, edge, messages, query_.link_capacity);
  }

  WalkedCell& At(CellId id) {
    for (WalkedCell& cell : cells_) {
      if (cell.id == id) return cell;
    }
    CHECK(false) << "cell " << id.value << " is not on stage " << program_.stage.value;
    return cells_.front();
  }
  // Alive now, and for a moment `transient` more.
  void Note(int64_t transient) {
    int64_t bytes = SaturatingAdd(alive_, transient);
    LinkPeak up, down;  // of the last cell with links
    for (const WalkedCell& cell : cells_) {
      if (cell.copies) bytes = SaturatingAdd(bytes, cell.copies->Bytes());
      if (!cell.upstream.empty()) up = cell.upstream[position_];
      if (!cell.downstream.empty()) down = cell.downstream[position_];
      if (!cell.upstream.empty()) bytes = SaturatingAdd(bytes, up.bytes);
      if (!cell.downstream.empty()) bytes = SaturatingAdd(bytes, down.bytes);
    }
    if (bytes <= peak_) return;
    peak_ = bytes;
    moment_ = {evaluation_, position_, up.neighbour, down.neighbour};
  }
  void KeepArrived(WalkedCell& at, int64_t bytes) {
    Keep(bytes);
    if (!at.copies) return;
    at.copies->Arrive(bytes);
    Note(0);
  }
  void KeepArrived(WalkedCell& at, const std::vector<int64_t>& tuple) {
    for (const int64_t bytes : tuple) KeepArrived(at, at.sizes.Scaled(bytes));
  }
  // What is rounded is there in both types for a moment.
  void KeepLoaded(WalkedCell& at, const CellMemory& cell) {
    for (size_t i = 0; i < cell.loaded.size(); ++i) {
      KeepArrived(at, at.sizes.Scaled(cell.loaded[i]));
      Note(at.sizes.Scaled(cell.rounded[i]));
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

  void Execute(WalkedCell& at, Opcode op, int m) {
    const int64_t n = at.sizes.SamplesOf(m);
    const CellMemory& cell = at.sizes.Of(m);
    const auto scaled = [&at](int64_t bytes) { return at.sizes.Scaled(bytes); };
    switch (op) {
      case Opcode::kReceiveActivation:
        return KeepArrived(at, cell.received);
      case Opcode::kLoadInput:
        return KeepLoaded(at, cell);
      case Opcode::kForward:
        return Forward(at, m);
      case Opcode::kRecompute:
        Note(scaled(cell.recompute - cell.read));
        Drop(scaled(cell.read));
        return Keep(SaturatingAdd(scaled(cell.stash), at.last ? scaled(cell.sent_beside_stash) : 0));
      case Opcode::kSendActivation:
        if (at.copies) at.copies->SendActivations();
        if (evaluation_) return Drop(scaled(cell.sent));
        return Drop(
            scaled(at.sizes.IsRecomputed(m) ? cell.sent_beside_read : cell.sent_beside_stash));
      case Opcode::kLoadTarget:
        for (const int64_t bytes : targets_) KeepArrived(at, SaturatingMultiply(bytes, n));
        return;
      case Opcode::kLoss:
        NoteChunk(at, cell, n);
        // The gradient of the logits takes their place, unless the backward reads them.
        if (evaluation_) {
          Drop(scaled(cell.sent));
        } else {
          Keep(scaled(TupleBytes(cell.received_gradients) - cell.sent_beside_stash));
        }
        return Drop(SaturatingMultiply(TupleBytes(targets_), n));
      case Opcode::kReceiveGradient:
        if (at.copies) at.copies->Answer();
        Drop(std::exchange(at.passing, 0));
        return KeepArrived(at, cell.received_gradients);
      case Opcode::kBackward:
      case Opcode::kBackwardInput:
        return Backward(at, op, m);
      case Opcode::kBackwardWeight:
        Note(scaled(cell.weight_part - cell.for_weights));
        return Drop(scaled(cell.for_weights));
      case Opcode::kSendGradient:
        if (at.copies) at.copies->SendGradients();
        return Drop(
            scaled(at.sizes.IsInTwoParts(m) ? cell.sent_beside_weights : cell.sent_gradients));
      case Opcode::kReceiveTiedValues:
        for (const int64_t bytes : at.tied.received_values) KeepArrived(at, bytes);
        return Drop(TupleBytes(at.tied.received_values) - at.tied.passed_values);
      case Opcode::kSendTiedValues:
        // From a card a copy goes on, which may run as late as the first activation's.
        if (!at.copies) return Drop(at.tied.passed_values);
        at.passing = at.tied.passed_values;
        return;
      case Opcode::kReceiveTiedGradients:
        for (const int64_t bytes : at.tied.received_gradients) KeepArrived(at, bytes);
        return;
      case Opcode::kAddTiedGradients:  // the parameter's own buffer takes them
        return;
      case Opcode::kSendTiedGradients:  // from a card copies go on
        if (!at.copies) Drop(TupleBytes(at.tied.received_gradients));
        return;
    }
  }

  // Where the head goes by chunks: beside what it reads the whole gradient of that, and logits of a
  // chunk.
  void NoteChunk(const WalkedCell& at, const CellMemory& cell, int64_t n) {
    if (n == 0 || !at.chunked_head) return;
    const int64_t gradient = evaluation_ ? 0 : at.sizes.Scaled(TupleBytes(cell.received_gradients));
    Note(SaturatingAdd(gradient, HeadChunkBytes(network_, query_.head_chunks, n, evaluation_)));
  }

  // The gradient of the inputs leaves before the weights' part begins, in every schedule that there
  // is.
  void Backward(WalkedCell& at, Opcode op, int m) {
    const CellMemory& cell = at.sizes.Of(m);
    const bool whole = op == Opcode::kBackward;
    const auto scaled = [&at](int64_t bytes) { return at.sizes.Scaled(bytes); };
    const int64_t before = cell.stash + TupleBytes(cell.received_gradients);
    Note(scaled((whole ? cell.backward : cell.input_part) - before));
    Drop(scaled(before));
    const int64_t left = whole ? cell.sent_gradients : cell.sent_beside_weights;
    Keep(SaturatingAdd(scaled(left), whole ? 0 : scaled(cell.for_weights)));
    if (!at.hands_up) return;
    Drop(scaled(left));
    HandOver(At(CellId(at.id.value - 1)), m, &CellMemory::received_gradients);
  }

  void Forward(WalkedCell& at, int m) {
    const CellMemory& cell = at.sizes.Of(m);
    const auto scaled = [&at](int64_t bytes) { return at.sizes.Scaled(bytes); };
    const int64_t inputs = TupleBytes(cell.loaded) + TupleBytes(cell.received);
    int64_t kept = 0, outputs = 0;
    if (evaluation_ || !at.backward || !at.sizes.IsRecomputed(m)) {
      Note(scaled((evaluation_ ? cell.evaluation : cell.kept) - inputs));
      // The stash is what is left of the inputs. Without a backward statistics are folded at once,
      // and no stash stays.
      kept = !evaluation_ && at.backward ? cell.stash : 0;
      outputs = evaluation_ ? cell.sent : cell.sent_beside_stash;
    } else {
      if (!at.last) Note(scaled(cell.forward - inputs));
      kept = cell.read;
      outputs = at.last ? 0 : cell.sent_beside_read;  // the last stage computes when it recomputes
    }
    Drop(scaled(inputs));
    Keep(scaled(kept + outputs));
    if (!at.hands_down) return;
    Drop(scaled(outputs));
    HandOver(At(CellId(at.id.value + 1)), m, &CellMemory::received);
  }

  // Tensors that the cell before may keep too count for both.
  void HandOver(WalkedCell& to, int m, std::vector<int64_t> CellMemory::*tuple) {
    Keep(to.sizes.Scaled(TupleBytes(to.sizes.Of(m).*tuple)));
  }

  const std::span<const StageProgram> programs_;
  const StageProgram& program_;
  const Network& network_;
  const bool evaluation_;
  const StageMemoryQuery& query_;
  std::vector<int64_t> targets_;  // loaded for the loss, of one sample
  std::vector<WalkedCell> cells_;
  size_t position_ = 0;
  int64_t alive_ = 0;
  int64_t peak_ = 0;
  StageMoment moment_;
};

}  // namespace

bool HasChunkedHead(const Network& network, const StageMemoryQuery& query) {
  return IsChunkedHead(network, query, query.cells.back());
}

ActivationPeak PeakOfActivations(const Network& network, std::span<const StageProgram> programs,
                                 int stage, bool evaluation, std::span<const TiedBytes> tied,
                                 const StageMemoryQuery& query) {
  return ProgramWalk(programs, stage, evaluation, network, tied, query).Peak();
}

}  // namespace stagecoach
