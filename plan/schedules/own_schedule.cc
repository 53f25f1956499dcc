#include "plan/schedules/own_schedule.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "plan/schedules/schedule_mark.h"

namespace stagecoach {
namespace {

constexpr char kField[] = "pipeline.own_schedule";

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(kField, ": ", what));
}

// Without comments, and with a line for each stage: one that does not begin with "stage" goes on
// with the line before.
std::string Lines(const std::string& text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string lines;
  for (const std::string& whole : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    std::string line(absl::StripAsciiWhitespace(whole.substr(0, whole.find('#'))));
    if (line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line.empty()) continue;
    const bool begins = absl::StartsWith(line, "stage") || lines.empty();
    absl::StrAppend(&lines, begins ? "\n" : " ", line);
  }
  return lines;
}

// Which stage has which cell, by what stands where.
class Places {
 public:
  Places(const OwnScheduleShape& shape, bool with_cells) : shape_(shape), with_cells_(with_cells) {}

  absl::Status Add(const StageProgram& program) {
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const std::string problem = Add(program.stage.value, program.instructions[i]);
      if (problem.empty()) continue;
      return Bad(absl::StrCat("stage ", program.stage.value, ": ", problem, "\n",
                              MarkInstruction(program, i, with_cells_)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<CellPlacement> Placement() const {
    const auto none = std::find(stages_.begin(), stages_.end(), kNone);
    if (none != stages_.end()) {
      return Bad(absl::StrCat("cell ", none - stages_.begin(),
                              " is on no stage; cells count from 0 without gaps, here to ",
                              std::ssize(stages_) - 1));
    }
    std::vector<int> cells(static_cast<size_t>(shape_.stages), 0);
    for (const int stage : stages_) ++cells[static_cast<size_t>(stage)];
    const auto most = std::max_element(cells.begin(), cells.end());
    if (*most > kMaxCellsPerStage) {
      return Bad(absl::StrCat("stage ", most - cells.begin(), " has ", *most, " cells; at most ",
                              kMaxCellsPerStage));
    }
    if (stages_.front() != 0) {
      return Bad(absl::StrCat("cell 0 is on stage ", stages_.front(),
                              "; number the stages so that it is on stage 0"));
    }
    const bool one_each = std::ssize(stages_) == shape_.stages && std::ranges::is_sorted(stages_);
    return one_each ? CellPlacement{} : stages_;
  }

 private:
  static constexpr int kNone = -1;

  std::string Add(int stage, const Instruction& instruction) {
    const int cell = instruction.cell.value, micro_batch = instruction.micro_batch.value;
    if (shape_.layers > 0 && cell >= shape_.layers) {
      return absl::StrCat("cell ", cell, ": the model has ", shape_.layers,
                          " layers, and each cell needs one");
    }
    if (micro_batch >= shape_.micro_batches) {
      return absl::StrCat("micro-batch ", micro_batch, ": they count from 0, and training.micro_batches is ",
                          shape_.micro_batches);
    }
    if (cell >= kMostCells) return absl::StrCat("cell ", cell, ": at most ", kMostCells, " cells");
    if (static_cast<size_t>(cell) >= stages_.size()) stages_.resize(cell + 1, kNone);
    int& place = stages_[static_cast<size_t>(cell)];
    if (place != kNone && place != stage) {
      return absl::StrCat("cell ", cell, " is on stage ", place, " already, and a cell has one stage");
    }
    place = stage;
    return "";
  }

  static constexpr int kMostCells = kMaxStages * kMaxCellsPerStage;
  const OwnScheduleShape shape_;
  const bool with_cells_;
  std::vector<int> stages_;  // by cell
};

// Each cell has a forward of each micro-batch, so a text is as long as its schedule is large. An order
// has each word once, and a backward of each micro-batch. What comes too early shows later, where
// stashes and messages are known.
absl::Status CheckWords(const OwnSchedule& own, int64_t micro_batches) {
  const bool with_cell = !own.placement.empty();
  std::set<std::tuple<int, int, Opcode>> words;
  for (const StageProgram& program : own.programs) {
    for (size_t n = 0; n < program.instructions.size(); ++n) {
      const Instruction& i = program.instructions[n];
      if (words.emplace(i.cell.value, i.micro_batch.value, i.op).second || own.complete) continue;
      return Bad(absl::StrCat("stage ", program.stage.value, ": ", FormatInstruction(i, with_cell),
                              " stands twice\n", MarkInstruction(program, n, with_cell)));
    }
  }
  for (int cell = 0; cell < own.cells(); ++cell) {
    const StageProgram& program = own.programs[static_cast<size_t>(StageOf(own.placement, cell))];
    for (int m = 0; m < micro_batches; ++m) {
      const auto has = [&](Opcode op) { return words.contains({cell, m, op}); };
      const bool split = has(Opcode::kBackwardInput) || has(Opcode::kBackwardWeight);
      std::optional<Opcode> missing;
      if (!has(Opcode::kForward)) {
        missing = Opcode::kForward;
      } else if (split && !has(Opcode::kBackwardInput)) {
        missing = Opcode::kBackwardInput;
      } else if (split && !has(Opcode::kBackwardWeight)) {
        missing = Opcode::kBackwardWeight;
      } else if (!split && !has(Opcode::kBackward)) {
        missing = Opcode::kBackward;
      }
      const auto text = [&](Opcode op) {
        return FormatInstruction({op, MicroBatchId(m), CellId(cell)}, with_cell);
      };
      if (own.complete && has(Opcode::kForward)) continue;
      if (split && has(Opcode::kBackward)) {
        return Bad(absl::StrCat("stage ", program.stage.value, ": ", text(Opcode::kBackward),
                                " is ", text(Opcode::kBackwardInput), " and ",
                                text(Opcode::kBackwardWeight), " in one; write it or them"));
      }
      if (!missing.has_value()) continue;
      return Bad(absl::StrCat(
          "stage ", program.stage.value, ": ", text(*missing),
          " is missing: training.micro_batches is ", micro_batches, ", and they count from 0\n",
          MarkInstruction(program, program.instructions.size(), with_cell)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OwnSchedule> ParseOwnSchedule(const std::string& text,
                                             const OwnScheduleShape& shape) {
  const std::string lines = Lines(text);
  const bool with_cells = absl::StrContains(lines, '.');
  OwnSchedule own;
  ASSIGN_OR_RETURN(own.programs,
                   Annotate(ParsePrograms(lines, with_cells), kField));
  if (std::ssize(own.programs) != shape.stages) {
    return Bad(absl::StrCat("pipeline.stages is ", shape.stages, ", and the text ends with ",
                            StageLabel(static_cast<int>(own.programs.size()) - 1),
                            " write a line for each stage, or change pipeline.stages"));
  }
  Places places(shape, with_cells);
  for (const StageProgram& program : own.programs) {
    if (program.instructions.empty()) {
      return Bad(absl::StrCat("stage ", program.stage.value, " has no words; give it a cell"));
    }
    RETURN_IF_ERROR(places.Add(program));
    own.complete = own.complete ||
                   std::any_of(program.instructions.begin(), program.instructions.end(),
                               [](const Instruction& i) { return !IsWork(i.op); });
  }
  ASSIGN_OR_RETURN(own.placement, places.Placement());
  RETURN_IF_ERROR(CheckWords(own, shape.micro_batches));
  return own;
}

absl::Status CheckOwnSchedule(const Schedule& schedule) {
  const absl::Status status = ValidateSchedule(schedule, PipelineLimits{});
  if (status.ok()) return status;
  std::string message(status.message());
  constexpr int kShown = 8;
  constexpr size_t kLongest = 160;
  // The stages that the message does not show, for the reader who wonders what they wait for.
  for (const StageProgram& program : schedule.programs) {
    const bool shown = absl::StrContains(message, absl::StrCat("\n", StageLabel(program.stage.value)));
    if (shown || program.stage.value >= kShown) continue;
    const std::string line = FormatProgram(program, !schedule.options.placement.empty());
    absl::StrAppend(&message, "\n", line.substr(0, kLongest), line.size() > kLongest ? " ..." : "");
  }
  return Bad(std::string(absl::StripPrefix(message, "schedule: ")));
}

}  // namespace stagecoach
