#include "plan/schedules/schedule_kinds.h"

// A line a schedule. Its file in plan/schedules defines `const ScheduleKind* <Name>ScheduleKind()`; its value of the enum
// ScheduleKind is in proto/stagecoach/v1/model.proto.
#define STAGECOACH_SCHEDULE_KINDS(KIND) \
  KIND(Gpipe)                           \
  KIND(OneForwardOneBackward)           \
  KIND(ZeroBubble)

namespace stagecoach {

#define STAGECOACH_DECLARE(Name) const ScheduleKind* Name##ScheduleKind();
STAGECOACH_SCHEDULE_KINDS(STAGECOACH_DECLARE)
#undef STAGECOACH_DECLARE

std::vector<StageWork> RunAhead(int forwards, int micro_batches) {
  std::vector<StageWork> order;
  for (int i = 0; i < forwards; ++i) order.push_back({Op::kForward, i});
  for (int i = 0; i < micro_batches; ++i) {
    if (forwards + i < micro_batches) order.push_back({Op::kForward, forwards + i});
    order.push_back({Op::kBackward, i});
  }
  return order;
}

double ScheduleKind::IdealBubble(const ScheduleOptions& options) const {
  return static_cast<double>(options.stages - 1) / (options.micro_batches + options.stages - 1);
}

const KindList<ScheduleKind>& ScheduleKinds() {
#define STAGECOACH_ENTRY(Name) Name##ScheduleKind(),
  static const auto* const list = new KindList<ScheduleKind>(
      "pipeline.schedule", "schedule", {STAGECOACH_SCHEDULE_KINDS(STAGECOACH_ENTRY)});
#undef STAGECOACH_ENTRY
  return *list;
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleKind* kind : ScheduleKinds().all()) names.emplace_back(kind->name());
  return names;
}

}  // namespace stagecoach
