// v_min: two cells a stage, down and up again as with zero_bubble_v, in the least memory that keeps
// all stages busy in between: about (K + 4) / 3 micro-batches a stage instead of K. It pays with
// waits at the beginning and the end (V-Min, Qi et al., arXiv 2405.15362, section 3).
//
// A building block has the six passes of a micro-batch on each stage: forward, gradient of inputs and
// gradient of weights of both cells, of one time each. Each follows the one that it waits for as soon
// as its stage has a place for it among the six, for a block begins every six times. Repeated for
// all micro-batches, passes of one stage never meet. Where activations are recomputed, backwards are
// whole, in the place of the gradient of inputs.
#include <algorithm>
#include <array>
#include <vector>

#include "plan/schedules/schedule_kinds.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {
namespace {

constexpr int kPasses = 6;  // of a stage and a micro-batch

struct Pass {
  int begin;
  StageWork work;
};

class Block {
 public:
  explicit Block(int stages)
      : stages_(stages), used_(static_cast<size_t>(stages)), passes_(used_.size()) {
    const int cells = 2 * stages;
    std::vector<int> backwards(static_cast<size_t>(cells));
    int time = -1;
    for (int cell = 0; cell < cells; ++cell) time = Put(Opcode::kForward, cell, time + 1);
    for (int cell = cells; cell-- > 0;) {
      backwards[cell] = time = Put(Opcode::kBackwardInput, cell, time + 1);
    }
    for (int cell = 0; cell < cells; ++cell) {
      Put(Opcode::kBackwardWeight, cell, backwards[cell] + 1);
    }
  }
  const std::vector<Pass>& OfStage(int stage) const { return passes_[static_cast<size_t>(stage)]; }

 private:
  int Put(Opcode op, int cell, int earliest) {
    const int chunk = cell < stages_ ? 0 : 1;
    const auto stage = static_cast<size_t>(chunk == 0 ? cell : 2 * stages_ - 1 - cell);
    int begin = earliest;
    while (used_[stage][begin % kPasses]) ++begin;
    used_[stage][begin % kPasses] = true;
    passes_[stage].push_back({begin, {op, 0, chunk}});
    return begin;
  }

  const int stages_;
  std::vector<std::array<bool, kPasses>> used_;  // by stage
  std::vector<std::vector<Pass>> passes_;        // by stage
};

class VMin final : public ScheduleKind {
 public:
  std::string_view name() const override { return "v_min"; }
  CellsPerStage cells_per_stage() const override { return {.least = 2, .most = 2, .usual = 2}; }
  CellPlacement Place(int stages, int /*cells_per_stage*/) const override {
    return VPlacement(stages);
  }

  std::vector<std::vector<StageWork>> Orders(const ScheduleOptions& options) const override {
    const Block block(options.stages);
    const bool splits = options.rematerialization == Rematerialization::kNever;
    std::vector<std::vector<StageWork>> orders;
    for (int stage = 0; stage < options.stages; ++stage) {
      std::vector<Pass> passes;
      for (Pass pass : block.OfStage(stage)) {
        if (!splits && pass.work.op == Opcode::kBackwardWeight) continue;
        if (!splits && pass.work.op == Opcode::kBackwardInput) pass.work.op = Opcode::kBackward;
        for (pass.work.micro_batch = 0; pass.work.micro_batch < options.micro_batches;
             ++pass.work.micro_batch) {
          passes.push_back(pass);
          pass.begin += kPasses;
        }
      }
      std::sort(passes.begin(), passes.end(),
                [](const Pass& a, const Pass& b) { return a.begin < b.begin; });
      std::vector<StageWork>& order = orders.emplace_back();
      for (const Pass& pass : passes) order.push_back(pass.work);
    }
    return orders;
  }

  // No formula is published: by its time.
  double IdealBubble(const ScheduleOptions& options) const override {
    return BubbleOfEqualCells(options);
  }
};

}  // namespace

const ScheduleKind* VMinScheduleKind() {
  static const auto* const kind = new VMin;
  return kind;
}

}  // namespace stagecoach
