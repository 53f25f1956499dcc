#include "plan/schedules/schedule_kinds.h"

#include <algorithm>

#include "base/listed.h"

namespace stagecoach {

// Each has a file in plan/schedules, which defines `const ScheduleKind* GpipeScheduleKind()`, and a
// value of the enum ScheduleKind in proto/stagecoach/v1/model.proto.
STAGECOACH_LISTED(Giver<const ScheduleKind*>, ScheduleKind,  //
                  Gpipe, OneForwardOneBackward, ZeroBubble, ZeroBubble2)

std::vector<StageWork> RunAhead(int forwards, int micro_batches) {
  std::vector<StageWork> order;
  for (int i = 0; i < forwards; ++i) order.push_back({Opcode::kForward, i});
  for (int i = 0; i < micro_batches; ++i) {
    if (forwards + i < micro_batches) order.push_back({Opcode::kForward, forwards + i});
    order.push_back({Opcode::kBackward, i});
  }
  return order;
}

std::vector<StageWork> SplitBackwards(const std::vector<StageWork>& whole, int put_off,
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

double FilledBubble(const ScheduleOptions& options) {
  return (options.stages - 1) / (3.0 * options.micro_batches + options.stages - 1);
}

double ScheduleKind::IdealBubble(const ScheduleOptions& options) const {
  return static_cast<double>(options.stages - 1) / (options.micro_batches + options.stages - 1);
}

const KindList<ScheduleKind>& ScheduleKinds() {
  static const auto* const list =
      new KindList<ScheduleKind>("pipeline.schedule", "schedule", CallEach(kListedScheduleKind));
  return *list;
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleKind* kind : ScheduleKinds().all()) names.emplace_back(kind->name());
  return names;
}

}  // namespace stagecoach
