// zero_bubble_2: zero_bubble with twice the forwards ahead, so that a message may be under way for a
// while and nobody waits for it (ZB-2p, Qi et al., arXiv 2401.10241, section 3). Stage s begins with
// 2 (K - s) - 1 forwards, as many as fit before its first gradient is back, and puts the weights'
// parts off by 2 s micro-batches. So each stage holds 2 K - 1 micro-batches at most. With equal
// times and links that cost nothing the step is that of zero_bubble; with others it is shorter.
// Of fewer than 2 K - 1 micro-batches it runs no further ahead than they last: else the weights'
// parts that were put off would make the end longer.
//
// Where activations are recomputed nothing is put off, as with zero_bubble.
#include <algorithm>

#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

class ZeroBubble2 final : public ScheduleKind {
 public:
  std::string_view name() const override { return "zero_bubble_2"; }

  std::vector<StageWork> Order(const ScheduleOptions& options, int stage) const override {
    const int below = options.stages - stage - 1;
    const std::vector<StageWork> whole = RunAhead(
        std::min(below + Further(options, below), options.micro_batches), options.micro_batches);
    if (!options.SendsGradient(stage)) return whole;  // nobody above waits
    const bool stashes = options.rematerialization == Rematerialization::kNever;
    const int above = stage - options.first_backward;
    return SplitBackwards(whole, stashes ? above + Further(options, above) : 0,
                          options.micro_batches);
  }

  double IdealBubble(const ScheduleOptions& options) const override {
    if (options.rematerialization != Rematerialization::kNever) {
      return ScheduleKind::IdealBubble(options);
    }
    return FilledBubble(options);
  }

 private:
  // How much further than zero_bubble, which goes by the number of stages below or above.
  static int Further(const ScheduleOptions& options, int zero_bubble) {
    return std::min(zero_bubble, std::max(options.micro_batches - options.stages, 0));
  }
};

}  // namespace

const ScheduleKind* ZeroBubble2ScheduleKind() {
  static const auto* const kind = new ZeroBubble2;
  return kind;
}

}  // namespace stagecoach
