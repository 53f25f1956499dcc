// zero_bubble_v: two cells a stage, down the stages and up again, so that the first stage has the
// last cell and gradients begin where activations did. With backwards in two parts no stage waits
// but for the first forwards, and each holds as much as the first stage of
// one_forward_one_backward: 2 K halves of micro-batches (ZB-V, Qi et al., arXiv 2401.10241, section
// 6).
//
// The order is found by playing equal cells: a forward and both parts of a backward take the same
// time. A stage that is free takes, of what is ready: the gradient of inputs, then a forward, then
// the gradient of weights; of two cells the second one; of a cell the next micro-batch. It begins no
// forward while it holds 2 K. Where activations are recomputed, backwards are whole and take three
// times a forward.
#include <algorithm>
#include <limits>
#include <optional>

#include "plan/schedules/schedule_kinds.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {
namespace {

// A stage's two cells as far as they have come.
struct Half {
  int forwards = 0, inputs = 0, weights = 0;  // begun
};

class Play {
 public:
  explicit Play(const ScheduleOptions& options)
      : options_(options),
        splits_(options.rematerialization == Rematerialization::kNever),
        halves_(static_cast<size_t>(options.cells())),
        forward_ends_(halves_.size(), Times(options)),
        input_ends_(halves_.size(), Times(options)),
        free_at_(static_cast<size_t>(options.stages), 0),
        live_(free_at_.size(), 0),
        orders_(free_at_.size()) {}

  std::vector<std::vector<StageWork>> Run() {
    for (int left = 2 * options_.stages; left > 0;) {
      left = 0;
      for (int stage = 0; stage < options_.stages; ++stage) {
        if (free_at_[stage] <= now_) Take(stage);
      }
      for (const Half& half : halves_) left += half.weights < options_.micro_batches ? 1 : 0;
      Forth();
    }
    return std::move(orders_);
  }

 private:
  static constexpr int kNotYet = std::numeric_limits<int>::max();
  static std::vector<int> Times(const ScheduleOptions& options) {
    return std::vector<int>(static_cast<size_t>(options.micro_batches), kNotYet);
  }

  int CellOf(int stage, int chunk) const {
    return chunk == 0 ? stage : options_.cells() - 1 - stage;
  }
  bool IsReady(const std::vector<int>& ends, int m) const {
    return ends[static_cast<size_t>(m)] <= now_;
  }
  bool CanForward(int cell) const {
    const int m = halves_[cell].forwards;
    return m < options_.micro_batches && live_[options_.StageOfCell(cell)] < 2 * options_.stages &&
           (cell == 0 || IsReady(forward_ends_[cell - 1], m));
  }
  bool CanBackward(int cell) const {
    const int m = halves_[cell].inputs;
    return m < options_.micro_batches && IsReady(forward_ends_[cell], m) &&
           (options_.IsLast(cell) || IsReady(input_ends_[cell + 1], m));
  }
  bool CanWeights(int cell) const { return halves_[cell].weights < halves_[cell].inputs; }

  void Take(int stage) {
    for (const int chunk : {1, 0}) {
      if (CanBackward(CellOf(stage, chunk))) return Backward(stage, chunk);
    }
    for (const int chunk : {1, 0}) {
      if (CanForward(CellOf(stage, chunk))) return Forward(stage, chunk);
    }
    for (const int chunk : {1, 0}) {
      if (CanWeights(CellOf(stage, chunk))) return Weights(stage, chunk);
    }
  }
  void Forward(int stage, int chunk) {
    const int cell = CellOf(stage, chunk), m = halves_[cell].forwards++;
    ++live_[stage];
    forward_ends_[cell][m] = Do(stage, {Opcode::kForward, m, chunk}, 1);
  }
  void Backward(int stage, int chunk) {
    const int cell = CellOf(stage, chunk), m = halves_[cell].inputs++;
    if (splits_) {
      input_ends_[cell][m] = Do(stage, {Opcode::kBackwardInput, m, chunk}, 1);
      return;
    }
    ++halves_[cell].weights;
    --live_[stage];
    input_ends_[cell][m] = Do(stage, {Opcode::kBackward, m, chunk}, 3);
  }
  void Weights(int stage, int chunk) {
    --live_[stage];
    Do(stage, {Opcode::kBackwardWeight, halves_[CellOf(stage, chunk)].weights++, chunk}, 1);
  }
  int Do(int stage, const StageWork& work, int time) {
    orders_[stage].push_back(work);
    return free_at_[stage] = now_ + time;
  }
  // To the next moment when a stage gets free.
  void Forth() {
    int next = kNotYet;
    for (const int free : free_at_) {
      if (free > now_) next = std::min(next, free);
    }
    now_ = next;
  }

  const ScheduleOptions& options_;
  const bool splits_;
  std::vector<Half> halves_;                                // by cell
  std::vector<std::vector<int>> forward_ends_, input_ends_;  // by cell and micro-batch
  std::vector<int> free_at_, live_;                         // by stage
  std::vector<std::vector<StageWork>> orders_;
  int now_ = 0;
};

class ZeroBubbleV final : public ScheduleKind {
 public:
  std::string_view name() const override { return "zero_bubble_v"; }
  CellsPerStage cells_per_stage() const override { return {.least = 2, .most = 2, .usual = 2}; }
  CellPlacement Place(int stages, int /*cells_per_stage*/) const override {
    return VPlacement(stages);
  }
  std::vector<std::vector<StageWork>> Orders(const ScheduleOptions& options) const override {
    return Play(options).Run();
  }
  double IdealBubble(const ScheduleOptions& options) const override {
    // Whole backwards fill no gaps, and no formula says what is left.
    if (options.rematerialization != Rematerialization::kNever) return BubbleOfEqualCells(options);
    return FilledBubble(options);
  }
};

}  // namespace

const ScheduleKind* ZeroBubbleVScheduleKind() {
  static const auto* const kind = new ZeroBubbleV;
  return kind;
}

}  // namespace stagecoach
