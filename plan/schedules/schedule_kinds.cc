#include "plan/schedules/schedule_kinds.h"

#include <algorithm>

#include "base/errors/check.h"
#include "base/listed.h"
#include "plan/schedules/own_schedule.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {

// Each has a file in plan/schedules/kinds, which defines `const ScheduleKind* GpipeScheduleKind()`, and a
// value of the enum ScheduleKind in proto/stagecoach/v1/model.proto.
STAGECOACH_LISTED(Giver<const ScheduleKind*>, ScheduleKind,  //
                  BreadthFirst, Gpipe, Interleaved, OneForwardOneBackward, Own, VMin, ZeroBubble,
                  ZeroBubble2, ZeroBubbleV)

namespace {

// Forwards of a stage: v M.
double WorkOfStage(const ScheduleOptions& options) {
  return static_cast<double>(options.cells()) / options.stages * options.micro_batches;
}

// With several cells a stage waits for a micro-batch to come round, unless others fill that time. The
// formulas know no such waits.
bool IsTooShort(const ScheduleOptions& options) {
  return options.cells() > options.stages && options.micro_batches < options.stages;
}

}  // namespace

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
  if (IsTooShort(options)) return BubbleOfEqualCells(options);
  const int wait = options.stages - 1;
  return wait / (3.0 * WorkOfStage(options) + wait);
}

std::vector<StageWork> ScheduleKind::Order(const ScheduleOptions&, int) const {
  CHECK(false) << name() << " tells neither a stage's order nor that of all";
  return {};
}

std::vector<std::vector<StageWork>> ScheduleKind::Orders(const ScheduleOptions& options) const {
  std::vector<std::vector<StageWork>> orders;
  for (int stage = 0; stage < options.stages; ++stage) orders.push_back(Order(options, stage));
  return orders;
}

double ScheduleKind::IdealBubble(const ScheduleOptions& options) const {
  if (IsTooShort(options)) return BubbleOfEqualCells(options);
  const int wait = options.stages - 1;
  return wait / (WorkOfStage(options) + wait);
}

const KindList<ScheduleKind>& ScheduleKinds() {
  static const auto* const list =
      new KindList<ScheduleKind>("pipeline.schedule", "schedule", CallEach(kListedScheduleKind));
  return *list;
}

int64_t CellsPerStageOf(const std::string& kind, int64_t cells_per_stage) {
  return cells_per_stage > 0 ? cells_per_stage
                             : ScheduleKinds().Named(kind).cells_per_stage().usual;
}

CellPlacement PlacementOf(const std::string& kind, int stages, int64_t cells_per_stage) {
  return ScheduleKinds().Named(kind).Place(
      stages, static_cast<int>(CellsPerStageOf(kind, cells_per_stage)));
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleKind* kind : ScheduleKinds().all()) {
    if (kind->name() != kOwnSchedule) names.emplace_back(kind->name());
  }
  return names;
}

}  // namespace stagecoach
