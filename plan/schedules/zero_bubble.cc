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
    return Split(whole, stashes ? stage - options.first_backward : 0, options.micro_batches);
  }

  double IdealBubble(const ScheduleOptions& options) const override {
    if (options.rematerialization != Rematerialization::kNever) {
      return ScheduleKind::IdealBubble(options);
    }
    return (options.stages - 1) / (3.0 * options.micro_batches + options.stages - 1);
  }

 private:
  // Weights' parts come so many micro-batches after the inputs'.
  static std::vector<StageWork> Split(const std::vector<StageWork>& whole, int put_off,
                                      int micro_batches) {
    std::vector<StageWork> order;
    for (const StageWork& work : whole) {
      if (work.op != Opcode::kBackward) {
        order.push_back(work);
        continue;
      }
      order.push_back({Opcode::kBackwardInput, work.micro_batch});
      if (work.micro_batch >= put_off) {
        order.push_back({Opcode::kBackwardWeight, work.micro_batch - put_off});
      }
    }
    for (int i = std::max(micro_batches - put_off, 0); i < micro_batches; ++i) {
      order.push_back({Opcode::kBackwardWeight, i});
    }
    return order;
  }
};

}  // namespace

const ScheduleKind* ZeroBubbleScheduleKind() {
  static const auto* const kind = new ZeroBubble;
  return kind;
}

}  // namespace stagecoach
