#include "plan/schedules/pipeline_walk.h"

#include "base/errors/check.h"

namespace stagecoach {
namespace {

struct LinkCount {
  size_t sent = 0;
  size_t received = 0;
};

class Walk {
 public:
  Walk(const ScheduleOptions& options, const std::vector<StageProgram>& programs,
       int link_capacity, const std::function<void(const WalkStep&)>& visit)
      : options_(options),
        programs_(programs),
        capacity_(static_cast<size_t>(link_capacity)),
        visit_(visit),
        links_(2 * static_cast<size_t>(options.cells())),
        positions_(programs.size(), 0),
        queued_(programs.size(), false) {}

  std::vector<size_t> Run() {
    for (int stage = static_cast<int>(programs_.size()); stage-- > 0;) Wake(stage);
    while (!runnable_.empty()) {
      const int stage = runnable_.back();
      runnable_.pop_back();
      queued_[stage] = false;
      while (Step(stage)) {
      }
    }
    return std::move(positions_);
  }

 private:
  void Wake(int stage) {
    if (queued_[stage]) return;
    queued_[stage] = true;
    runnable_.push_back(stage);
  }

  bool Step(int stage) {
    const std::vector<Instruction>& instructions = programs_[stage].instructions;
    const size_t position = positions_[stage];
    if (position == instructions.size()) return false;
    const std::optional<LinkEnd> end = LinkEndOf(instructions[position]);
    size_t message = 0;
    if (end.has_value()) {
      CHECK(end->edge >= 0 && end->edge + 1 < options_.cells())
          << "no other cell for instruction " << position << " of stage " << stage;
      LinkCount& link = links_[end->index()];
      if (end->sends ? link.sent - link.received >= capacity_ : link.sent == link.received) {
        return false;
      }
      message = end->sends ? link.sent++ : link.received++;
      const bool at_first = end->sends == end->activations;
      Wake(options_.StageOfCell(at_first ? end->edge + 1 : end->edge));
    }
    visit_({.stage = stage, .position = position, .message = message});
    ++positions_[stage];
    return true;
  }

  const ScheduleOptions& options_;
  const std::vector<StageProgram>& programs_;
  const size_t capacity_;
  const std::function<void(const WalkStep&)>& visit_;
  std::vector<LinkCount> links_;
  std::vector<size_t> positions_;
  std::vector<bool> queued_;
  std::vector<int> runnable_;
};

}  // namespace

std::optional<LinkEnd> LinkEndOf(const Instruction& instruction) {
  const int cell = instruction.cell.value;
  switch (instruction.op) {
    case Opcode::kSendActivation:
      return LinkEnd{.sends = true, .activations = true, .edge = cell};
    case Opcode::kReceiveActivation:
      return LinkEnd{.sends = false, .activations = true, .edge = cell - 1};
    case Opcode::kSendGradient:
      return LinkEnd{.sends = true, .activations = false, .edge = cell - 1};
    case Opcode::kReceiveGradient:
      return LinkEnd{.sends = false, .activations = false, .edge = cell};
    case Opcode::kSendTiedValues:
      return LinkEnd{.sends = true, .activations = true, .edge = cell, .tied = true};
    case Opcode::kReceiveTiedValues:
      return LinkEnd{.sends = false, .activations = true, .edge = cell - 1, .tied = true};
    case Opcode::kSendTiedGradients:
      return LinkEnd{.sends = true, .activations = false, .edge = cell - 1, .tied = true};
    case Opcode::kReceiveTiedGradients:
      return LinkEnd{.sends = false, .activations = false, .edge = cell, .tied = true};
    case Opcode::kAddTiedGradients:
    case Opcode::kLoadInput:
    case Opcode::kForward:
    case Opcode::kLoadTarget:
    case Opcode::kLoss:
    case Opcode::kRecompute:
    case Opcode::kBackward:
    case Opcode::kBackwardInput:
    case Opcode::kBackwardWeight:
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<size_t> WalkPipeline(const ScheduleOptions& options,
                                 const std::vector<StageProgram>& programs, int link_capacity,
                                 const std::function<void(const WalkStep&)>& visit) {
  CHECK(link_capacity >= 1) << "link capacity " << link_capacity;
  return Walk(options, programs, link_capacity, visit).Run();
}

}  // namespace stagecoach
