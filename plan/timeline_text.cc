// FormatTimeline: a lane a stage, drawn with characters.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

constexpr int kLeastColumns = 16;
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

}  // namespace

std::string FormatTimeline(const Timeline& timeline, int width) {
  const int stages = static_cast<int>(timeline.busy_seconds.size());
  const int label = static_cast<int>(absl::StrCat("stage ", stages - 1, " ").size());
  const int columns = std::max(width - label - 2, kLeastColumns);
  std::vector<std::string> lanes(stages, std::string(columns, '.'));
  const double scale = timeline.step_seconds > 0 ? columns / timeline.step_seconds : 0;
  for (const TimelineEvent& event : timeline.events) {
    if (!IsDrawn(event.instruction.op)) continue;
    // Both ends are rounded alike, so neighbours touch and nothing is drawn twice.
    const int begin = std::min(columns, static_cast<int>(event.start_seconds * scale + 0.5));
    const int end = std::min(columns, static_cast<int>(event.end_seconds * scale + 0.5));
    lanes[event.stage.value].replace(begin, end - begin, Cell(event.instruction, end - begin));
  }
  std::string text;
  for (int stage = 0; stage < stages; ++stage) {
    absl::StrAppend(&text, absl::StrFormat("%-*s", label, absl::StrCat("stage ", stage, " ")), "|",
                    lanes[stage], "|\n");
  }
  const std::string end = absl::StrFormat("%.3g s", timeline.step_seconds);
  absl::StrAppend(&text, absl::StrFormat("%-*s %-*s%s\n", label, "",
                                         columns - static_cast<int>(end.size()), "0", end));
  const std::string legend = absl::StrFormat("bubble %.1f %%  ", 100 * timeline.Bubble()) + kLegend;
  if (static_cast<int>(legend.size()) <= label + columns + 2) absl::StrAppend(&text, legend, "\n");
  return text;
}

}  // namespace stagecoach
