// interleaved: one_forward_one_backward with several cells a stage, in a loop. Micro-batches go in
// rounds: each cell of a stage in turn takes those of a round (Narayanan et al., arXiv 2104.04473,
// section 2.2). With v cells a stage the wait for the first micro-batch is a v-th as long.
//
// Rounds have K micro-batches if K divides M, as published. Otherwise there are as many rounds as
// have K at least, of sizes as equal as can be; so any M works, and no stage waits within a round.
#include <algorithm>

#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

std::vector<int> Rounds(const ScheduleOptions& options) {
  const int count = std::max(1, options.micro_batches / options.stages);
  std::vector<int> rounds(static_cast<size_t>(count), options.micro_batches / count);
  for (int i = 0; i < options.micro_batches % count; ++i) ++rounds[static_cast<size_t>(i)];
  return rounds;
}

std::vector<StageWork> InRounds(Opcode op, const std::vector<int>& rounds, int chunks) {
  std::vector<StageWork> works;
  int first = 0;
  for (const int size : rounds) {
    for (int i = 0; i < chunks; ++i) {
      const int chunk = op == Opcode::kForward ? i : chunks - 1 - i;
      for (int m = first; m < first + size; ++m) works.push_back({op, m, chunk});
    }
    first += size;
  }
  return works;
}

class Interleaved final : public ScheduleKind {
 public:
  std::string_view name() const override { return "interleaved"; }
  CellsPerStage cells_per_stage() const override { return {.least = 2, .most = kMaxCellsPerStage, .usual = 2}; }

 protected:
  std::vector<StageWork> Order(const ScheduleOptions& options, int stage) const override {
    const int chunks = options.cells() / options.stages;
    const std::vector<int> rounds = Rounds(options);
    const std::vector<StageWork> forwards = InRounds(Opcode::kForward, rounds, chunks);
    const std::vector<StageWork> backwards = InRounds(Opcode::kBackward, rounds, chunks);
    const int ahead = 2 * (options.stages - stage - 1) + (chunks - 1) * rounds.front();
    size_t next = std::min(static_cast<size_t>(ahead), forwards.size());
    std::vector<StageWork> order(forwards.begin(), forwards.begin() + static_cast<int64_t>(next));
    for (const StageWork& backward : backwards) {
      if (next < forwards.size()) order.push_back(forwards[next++]);
      order.push_back(backward);
    }
    return order;
  }
};

}  // namespace

const ScheduleKind* InterleavedScheduleKind() {
  static const auto* const kind = new Interleaved;
  return kind;
}

}  // namespace stagecoach
