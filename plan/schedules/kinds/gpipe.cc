// gpipe: all forwards, then all backwards (GPipe section 2.3, figure 2).
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

class Gpipe final : public ScheduleKind {
 public:
  std::string_view name() const override { return "gpipe"; }
  std::vector<StageWork> Order(const ScheduleOptions& options, int /*stage*/) const override {
    return RunAhead(options.micro_batches, options.micro_batches);
  }
};

}  // namespace

const ScheduleKind* GpipeScheduleKind() {
  static const auto* const kind = new Gpipe;
  return kind;
}

}  // namespace stagecoach
