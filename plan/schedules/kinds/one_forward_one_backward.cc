// one_forward_one_backward: as many forwards first as there are stages below, then one of each in
// turn, so that stage i holds at most K - i micro-batches (PipeDream-flush, Narayanan et al., arXiv
// 2006.09503).
#include <algorithm>

#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

class OneForwardOneBackward final : public ScheduleKind {
 public:
  std::string_view name() const override { return "one_forward_one_backward"; }
  std::vector<StageWork> Order(const ScheduleOptions& options, int stage) const override {
    return RunAhead(std::min(options.stages - stage - 1, options.micro_batches),
                    options.micro_batches);
  }
};

}  // namespace

const ScheduleKind* OneForwardOneBackwardScheduleKind() {
  static const auto* const kind = new OneForwardOneBackward;
  return kind;
}

}  // namespace stagecoach
