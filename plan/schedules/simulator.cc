#include "plan/schedules/simulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/schedules/pipeline_walk.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

bool IsDuration(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

absl::Status CheckCosts(const Schedule& schedule, std::span<const CellCost> costs,
                        const LinkCost& link) {
  if (std::ssize(costs) != schedule.options.cells()) {
    return absl::InvalidArgumentError(absl::StrCat("simulation: ", costs.size(), " costs for ",
                                                   schedule.options.cells(), " cells"));
  }
  for (size_t cell = 0; cell < costs.size(); ++cell) {
    const CellCost& cost = costs[cell];
    if (IsDuration(cost.forward_seconds) && IsDuration(cost.backward_seconds) &&
        IsDuration(cost.recompute_seconds) && IsDuration(cost.loss_seconds) &&
        IsDuration(cost.load_seconds) && cost.activation_bytes >= 0 && cost.gradient_bytes >= 0 &&
        cost.tied_value_bytes >= 0 && cost.tied_gradient_bytes >= 0) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("simulation: costs of cell ", cell, " must be finite and >= 0"));
  }
  if (!(link.bytes_per_second > 0) || !IsDuration(link.latency_seconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("simulation: a link needs bytes_per_second > 0 (", link.bytes_per_second,
                     ") and latency_seconds >= 0 (", link.latency_seconds, ")"));
  }
  return absl::OkStatus();
}

// Seconds of work of an instruction; sends and receives take only what they wait.
double WorkSeconds(Opcode op, const CellCost& cost) {
  switch (op) {
    case Opcode::kLoadInput:
    case Opcode::kLoadTarget:
      return cost.load_seconds;
    case Opcode::kForward:
      return cost.forward_seconds;
    case Opcode::kLoss:
      return cost.loss_seconds;
    case Opcode::kRecompute:
      return cost.recompute_seconds;
    case Opcode::kBackward:
      return cost.backward_seconds;
    case Opcode::kBackwardInput:
    case Opcode::kBackwardWeight:
      return 0.5 * cost.backward_seconds;
    case Opcode::kReceiveActivation:
    case Opcode::kSendActivation:
    case Opcode::kReceiveGradient:
    case Opcode::kSendGradient:
    case Opcode::kReceiveTiedValues:
    case Opcode::kSendTiedValues:
    case Opcode::kReceiveTiedGradients:
    case Opcode::kAddTiedGradients:  // with the optimizer, which is outside of the program
    case Opcode::kSendTiedGradients:
      return 0;
  }
  return 0;
}

// Of one message.
int64_t BytesOf(const LinkEnd& end, const CellCost& cost) {
  if (end.tied) return end.activations ? cost.tied_value_bytes : cost.tied_gradient_bytes;
  return end.activations ? cost.activation_bytes : cost.gradient_bytes;
}

bool IsBusy(Opcode op) {
  return op == Opcode::kForward || op == Opcode::kRecompute || op == Opcode::kBackward ||
         op == Opcode::kBackwardInput || op == Opcode::kBackwardWeight || op == Opcode::kLoss;
}

// One direction of an edge: messages follow each other at the link's rate, and arrive one
// latency after their last byte left.
struct LinkClock {
  double free_seconds = 0;       // when the wire is done with the last message
  std::vector<double> arrivals;  // by message
  std::vector<double> receives;  // by message: when the receiver took it, and room came free
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, std::span<const CellCost> costs, const LinkCost& link,
             int link_capacity)
      : schedule_(schedule),
        costs_(costs),
        link_(link),
        capacity_(static_cast<size_t>(link_capacity)),
        links_(2 * costs.size()),
        events_(schedule.programs.size()),
        now_(schedule.programs.size(), 0.0),
        empty_(EmptyForwards(schedule)) {
    for (size_t stage = 0; stage < schedule.programs.size(); ++stage) {
      events_[stage].reserve(schedule.programs[stage].instructions.size());
    }
  }

  void Visit(const WalkStep& step) {
    const Instruction& instruction = schedule_.programs[step.stage].instructions[step.position];
    const double start = now_[step.stage];
    const std::optional<LinkEnd> end = LinkEndOf(instruction);
    const double finish = end.has_value() ? PassMessage(*end, step.message, start)
                                          : start + WorkOf(instruction);
    now_[step.stage] = finish;
    events_[step.stage].push_back({.stage = StageId(step.stage),
                                   .instruction = instruction,
                                   .start_seconds = start,
                                   .end_seconds = finish});
  }

  Timeline Finish() {
    Timeline timeline;
    for (const std::vector<TimelineEvent>& events : events_) {
      double busy = 0;
      for (const TimelineEvent& event : events) {
        if (IsBusy(event.instruction.op)) busy += WorkOf(event.instruction);
      }
      timeline.busy_seconds.push_back(busy);
      timeline.events.insert(timeline.events.end(), events.begin(), events.end());
    }
    for (double now : now_) timeline.step_seconds = std::max(timeline.step_seconds, now);
    return timeline;
  }

 private:
  double WorkOf(const Instruction& instruction) const {
    const bool last = schedule_.options.IsLast(instruction.cell.value);
    const bool nothing = last && instruction.op == Opcode::kForward &&
                         empty_[static_cast<size_t>(instruction.micro_batch.value)];
    return nothing ? 0 : WorkSeconds(instruction.op, costs_[static_cast<size_t>(instruction.cell.value)]);
  }

  // Returns when the instruction is over.
  double PassMessage(const LinkEnd& end, size_t message, double now) {
    if (schedule_.options.IsLocal(end.edge)) return now;
    LinkClock& clock = links_[end.index()];
    if (!end.sends) {
      clock.receives.push_back(std::max(now, clock.arrivals[message]));
      return clock.receives.back();
    }
    const double accepted =
        message < capacity_ ? now : std::max(now, clock.receives[message - capacity_]);
    const auto bytes = static_cast<double>(BytesOf(end, costs_[end.edge]));
    clock.free_seconds = std::max(accepted, clock.free_seconds) + bytes / link_.bytes_per_second;
    clock.arrivals.push_back(clock.free_seconds + link_.latency_seconds);
    return accepted;
  }

  const Schedule& schedule_;
  const std::span<const CellCost> costs_;
  const LinkCost link_;
  const size_t capacity_;
  std::vector<LinkClock> links_;
  std::vector<std::vector<TimelineEvent>> events_;
  std::vector<double> now_;
  const std::vector<bool> empty_;  // forwards of the last cell
};

}  // namespace

double Timeline::Bubble() const {
  const double whole = static_cast<double>(busy_seconds.size()) * step_seconds;
  if (!(whole > 0)) return 0;
  double busy = 0;
  for (double seconds : busy_seconds) busy += seconds;
  return 1 - busy / whole;
}

double IdealBubble(const ScheduleOptions& options) {
  return ScheduleKinds().Named(options.kind).IdealBubble(options);
}

double BubbleOfEqualCells(const ScheduleOptions& options) {
  ScheduleOptions plain = options;
  if (options.own == nullptr) {  // whose text may have what the network asks for
    plain.loading = plain.tied_cuts = plain.tied_owners = {};
    plain.first_backward = 0;
  }
  const std::vector<CellCost> costs(static_cast<size_t>(options.cells()),
                                    {.forward_seconds = 1, .backward_seconds = 2});
  const auto timeline = Simulate(MakeSchedule(std::move(plain)), costs, {}, {});
  return timeline.ok() ? timeline->Bubble() : 0;
}

absl::StatusOr<Timeline> Simulate(const Schedule& schedule, std::span<const CellCost> costs,
                                  const LinkCost& link, const PipelineLimits& limits) {
  RETURN_IF_ERROR(ValidateSchedule(schedule, limits));
  RETURN_IF_ERROR(CheckCosts(schedule, costs, link));
  Simulation simulation(schedule, costs, link, limits.link_capacity);
  WalkPipeline(schedule.options, schedule.programs, limits.link_capacity,
               [&simulation](const WalkStep& step) { simulation.Visit(step); });
  return simulation.Finish();
}

}  // namespace stagecoach
