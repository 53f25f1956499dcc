// breadth_first: gpipe with several cells a stage, in a loop. A stage runs all micro-batches through
// one of its cells before the next one (Lamy-Poirier, arXiv 2211.05953, section 4). So messages to
// other stages and, later, sums over replicas have the longest time beside the work.
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

class BreadthFirst final : public ScheduleKind {
 public:
  std::string_view name() const override { return "breadth_first"; }
  CellsPerStage cells_per_stage() const override { return {.least = 2, .most = kMaxCellsPerStage, .usual = 2}; }

 protected:
  std::vector<StageWork> Order(const ScheduleOptions& options, int /*stage*/) const override {
    const int chunks = options.cells() / options.stages;
    std::vector<StageWork> order;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int m = 0; m < options.micro_batches; ++m) order.push_back({Opcode::kForward, m, chunk});
    }
    for (int chunk = chunks; chunk-- > 0;) {
      for (int m = 0; m < options.micro_batches; ++m) {
        order.push_back({Opcode::kBackward, m, chunk});
      }
    }
    return order;
  }
};

}  // namespace

const ScheduleKind* BreadthFirstScheduleKind() {
  static const auto* const kind = new BreadthFirst;
  return kind;
}

}  // namespace stagecoach
