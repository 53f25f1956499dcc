// FormatTimeline: a lane a stage, drawn with characters; of many stages every n-th.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

constexpr int kLeastColumns = 16;
constexpr int kMostLanes = 40;  // that a screen holds
constexpr const char* kLegend = "F forward  R recompute  L loss  B backward  . waits";

bool IsDrawn(Opcode op) {
  switch (op) {
    case Opcode::kForward:
    case Opcode::kLoss:
    case Opcode::kRecompute:
    case Opcode::kBackward:
    case Opcode::kBackwardInput:
    case Opcode::kBackwardWeight:
      return true;
    case Opcode::kLoadInput:
    case Opcode::kReceiveActivation:
    case Opcode::kSendActivation:
    case Opcode::kLoadTarget:
    case Opcode::kReceiveGradient:
    case Opcode::kSendGradient:
    case Opcode::kReceiveTiedValues:
    case Opcode::kSendTiedValues:
    case Opcode::kReceiveTiedGradients:
    case Opcode::kAddTiedGradients:
    case Opcode::kSendTiedGradients:
      return false;
  }
  return false;
}

// "F12-----"; where the number has no room, "FF".
std::string Cell(const Instruction& instruction, int columns) {
  std::string text = FormatInstruction(instruction);
  if (static_cast<int>(text.size()) > columns) return std::string(columns, text[0]);
  text.resize(columns, '-');
  return text;
}

// One stage's lane. Instructions with room for a letter are drawn one by one. Shorter ones share a
// column: the letter is that of the instructions that take most of it.
class Lane {
 public:
  Lane(int columns, double columns_per_second)
      : scale_(columns_per_second), text_(columns, '.'), shares_(columns) {}

  void Draw(const TimelineEvent& event) {
    const double start = event.start_seconds * scale_, stop = event.end_seconds * scale_;
    if (stop - start < 1) return Share(FormatInstruction(event.instruction)[0], start, stop);
    // Both ends are rounded alike, so neighbours touch and nothing is drawn twice.
    const int begin = Column(start + 0.5), end = Column(stop + 0.5);
    text_.replace(begin, end - begin, Cell(event.instruction, end - begin));
  }

  std::string Finish() {
    for (size_t column = 0; column < shares_.size(); ++column) {
      double busy = 0, most = 0;
      char letter = '.';
      for (const auto& [of, share] : shares_[column]) {
        busy += share;
        if (share > most) letter = of;
        most = std::max(most, share);
      }
      if (text_[column] == '.' && busy >= 0.5) text_[column] = letter;
    }
    return text_;
  }

 private:
  int Column(double place) const {
    return std::min(static_cast<int>(text_.size()), static_cast<int>(place));
  }
  void Share(char letter, double start, double stop) {
    for (int column = Column(start); column < Column(stop + 1); ++column) {
      const double share = std::min(stop, column + 1.0) - std::max<double>(start, column);
      if (share > 0) shares_[column][letter] += share;
    }
  }

  const double scale_;
  std::string text_;
  std::vector<std::map<char, double>> shares_;  // by column, how much of it each letter takes
};

}  // namespace

std::string FormatTimeline(const Timeline& timeline, int width) {
  const int stages = static_cast<int>(timeline.busy_seconds.size());
  const int label = static_cast<int>(absl::StrCat("stage ", stages - 1, " ").size());
  const int columns = std::max(width - label - 2, kLeastColumns);
  const double scale = timeline.step_seconds > 0 ? columns / timeline.step_seconds : 0;
  std::vector<Lane> lanes(stages, Lane(columns, scale));
  for (const TimelineEvent& event : timeline.events) {
    if (IsDrawn(event.instruction.op)) lanes[event.stage.value].Draw(event);
  }
  const int step = (stages + kMostLanes - 1) / kMostLanes;
  std::string text;
  for (int stage = 0; stage < stages; ++stage) {
    if (stage % step != 0 && stage + 1 < stages) continue;
    absl::StrAppend(&text, absl::StrFormat("%-*s", label, absl::StrCat("stage ", stage, " ")), "|",
                    lanes[stage].Finish(), "|\n");
  }
  const std::string end = absl::StrFormat("%.3g s", timeline.step_seconds);
  absl::StrAppend(&text, absl::StrFormat("%-*s %-*s%s\n", label, "",
                                         columns - static_cast<int>(end.size()), "0", end));
  const std::string legend = absl::StrFormat("bubble %.1f %%  ", 100 * timeline.Bubble()) + kLegend;
  if (static_cast<int>(legend.size()) <= label + columns + 2) absl::StrAppend(&text, legend, "\n");
  return text;
}

}  // namespace stagecoach
