// zero_bubble: as one_forward_one_backward, with each backward cut in two. The gradient of the
// inputs comes first and leaves at once, for the stage above waits for it; the gradient of the
// weights, for which nobody waits, fills the gaps (ZB-H1, Qi et al., arXiv 2401.10241, section 2).
// Stage s puts it off by s micro-batches, so each stage holds K of them at most, as the first stage
// of one_forward_one_backward does. With equal times of forward and both parts the step takes 3 M +
// K - 1 of them, and no schedule that begins and ends with all stages empty takes less.
//
// Where activations are recomputed one stash at a time is promised, so nothing is put off: the
// gradient leaves before the weights' part, and that is all.
#include <algorithm>

#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

class ZeroBubble final : public ScheduleKind {
 public:
  std::string_view name() const override { return "zero_bubble"; }

  std::vector<StageWork> Order(const ScheduleOptions& options, int stage) const override {
    const int ahead = std::min(options.stages - stage - 1, options.micro_batches);
    const std::vector<StageWork> whole = RunAhead(ahead, options.micro_batches);
    if (!options.SendsGradient(stage)) return whole;  // nobody above waits
    const bool stashes = options.rematerialization == Rematerialization::kNever;
    return SplitBackwards(whole, stashes ? stage - options.first_backward : 0,
                          options.micro_batches);
  }

  double IdealBubble(const ScheduleOptions& options) const override {
    if (options.rematerialization != Rematerialization::kNever) {
      return ScheduleKind::IdealBubble(options);
    }
    return FilledBubble(options);
  }
};

}  // namespace

const ScheduleKind* ZeroBubbleScheduleKind() {
  static const auto* const kind = new ZeroBubble;
  return kind;
}

}  // namespace stagecoach
