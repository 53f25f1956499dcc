#include "plan/schedules/receive_early.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "plan/schedules/pipeline_walk.h"

namespace stagecoach {
namespace {

int UnitsOf(Opcode op) {
  switch (op) {
    case Opcode::kForward:
    case Opcode::kRecompute:
    case Opcode::kBackwardInput:
    case Opcode::kBackwardWeight:
      return 1;
    case Opcode::kBackward:
      return 2;
    default:
      return 0;
  }
}

// When everything happens with links of any size.
class UnitTimes {
 public:
  UnitTimes(const ScheduleOptions& options, const std::vector<StageProgram>& programs)
      : sent_(2 * static_cast<size_t>(options.cells())), ends_(programs.size()) {
    std::vector<int64_t> now(programs.size(), 0);
    const std::vector<size_t> ends = WalkPipeline(
        options, programs, std::numeric_limits<int>::max(), [&](const WalkStep& step) {
      const Instruction& instruction = programs[step.stage].instructions[step.position];
      int64_t& time = now[step.stage];
      const std::optional<LinkEnd> end = LinkEndOf(instruction);
      if (!end.has_value()) {
        time += UnitsOf(instruction.op);
      } else if (end->sends) {
        sent_[end->index()].push_back(time);
      } else {
        time = std::max(time, sent_[end->index()][step.message]);
      }
      ends_[step.stage].push_back(time);
    });
    for (size_t stage = 0; stage < programs.size(); ++stage) {
      complete_ = complete_ && ends[stage] == programs[stage].instructions.size();
    }
  }

  bool complete() const { return complete_; }  // no program waits for ever

  int64_t EndOf(int stage, size_t position) const { return ends_[stage][position]; }
  // When the message is ready to be sent; nullopt: there is none.
  std::optional<int64_t> SentAt(const LinkEnd& end, size_t message) const {
    const std::vector<int64_t>& sent = sent_[end.index()];
    return message < sent.size() ? std::optional(sent[message]) : std::nullopt;
  }

 private:
  bool complete_ = true;
  std::vector<std::vector<int64_t>> sent_;  // by link and message
  std::vector<std::vector<int64_t>> ends_;  // by stage and position
};

StageProgram Moved(const StageProgram& program, const UnitTimes& times, int link_capacity,
                   size_t links) {
  const std::vector<Instruction>& instructions = program.instructions;
  std::vector<size_t> places(instructions.size());  // in front of which instruction each stands
  std::vector<int64_t> due(instructions.size(), 0);  // of those that moved: when a sender would wait
  std::vector<size_t> received(links, 0);           // messages
  for (size_t i = 0; i < instructions.size(); ++i) {
    places[i] = i;
    const std::optional<LinkEnd> end = LinkEndOf(instructions[i]);
    if (!end.has_value() || end->sends) continue;
    const size_t message = received[end->index()]++;
    if (end->tied) continue;
    const std::optional<int64_t> next =
        times.SentAt(*end, message + static_cast<size_t>(link_capacity));
    if (!next.has_value()) continue;
    // At the same time too: a sender that stands there may wait for this very receive.
    while (places[i] > 0 && times.EndOf(program.stage.value, places[i] - 1) >= *next) --places[i];
    due[i] = *next;
  }
  std::vector<size_t> order(instructions.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // What moved stands before what it moved in front of, and what is due sooner before the rest.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) {
      return std::tuple(places[i], places[i] == i, places[i] == i ? 0 : due[i]);
    };
    return key(a) < key(b);
  });
  StageProgram moved{.stage = program.stage, .instructions = {}};
  for (const size_t i : order) moved.instructions.push_back(instructions[i]);
  return moved;
}

}  // namespace

void ReceiveEarly(const ScheduleOptions& options, int link_capacity,
                  std::vector<StageProgram>* programs) {
  const UnitTimes times(options, *programs);
  if (!times.complete()) return;  // who validates says where it ends
  for (StageProgram& program : *programs) {
    program = Moved(program, times, link_capacity, 2 * static_cast<size_t>(options.cells()));
  }
}

}  // namespace stagecoach
