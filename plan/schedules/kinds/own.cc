// own: the schedule that the job brings as a text (plan/schedules/own_schedule.h).
#include "plan/schedules/own_schedule.h"

#include <algorithm>

#include "base/errors/check.h"
#include "plan/schedules/schedule_kinds.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {
namespace {

class Own final : public ScheduleKind {
 public:
  std::string_view name() const override { return kOwnSchedule; }

  // By its time: a text has no formula.
  double IdealBubble(const ScheduleOptions& options) const override {
    return BubbleOfEqualCells(options);
  }

 protected:
  std::vector<StageWork> Order(const ScheduleOptions& options, int stage) const override {
    CHECK(options.own != nullptr) << "no text";
    const std::vector<int> cells = options.CellsOfStage(stage);
    std::vector<StageWork> order;
    for (const Instruction& instruction :
         options.own->programs[static_cast<size_t>(stage)].instructions) {
      if (!IsWork(instruction.op)) continue;
      const auto cell = std::find(cells.begin(), cells.end(), instruction.cell.value);
      CHECK(cell != cells.end()) << "cell " << instruction.cell.value << " is not on stage " << stage;
      order.push_back({instruction.op, instruction.micro_batch.value,
                       static_cast<int>(cell - cells.begin())});
    }
    return order;
  }
};

}  // namespace

const ScheduleKind* OwnScheduleKind() {
  static const auto* const kind = new Own;
  return kind;
}

}  // namespace stagecoach
