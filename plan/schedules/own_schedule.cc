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
  std::string lines;
  for (const std::string& whole : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    const std::string line(absl::StripAsciiWhitespace(whole.substr(0, whole.find('#'))));
    if (line.empty()) continue;
    const bool begins = absl::StartsWith(line, "stage") || lines.empty();
    absl::StrAppend(&lines, begins ? "\n" : " ", line);
  }
  return lines;
}

// Which stage has which cell, by what stands where.
class Places {
 public:
  explicit Places(const OwnScheduleShape& shape) : shape_(shape) {}

  absl::Status Add(const StageProgram& program) {
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const std::string problem = Add(program.stage.value, program.instructions[i]);
      if (problem.empty()) continue;
      return Bad(absl::StrCat("stage ", program.stage.value, ": ", problem, "\n",
                              MarkInstruction(program, i)));
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
    for (int stage = 0; stage < shape_.stages; ++stage) {
      if (std::find(stages_.begin(), stages_.end(), stage) != stages_.end()) continue;
      return Bad(absl::StrCat("stage ", stage, " has no cell; give it one, or set pipeline.stages"));
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
  std::vector<int> stages_;  // by cell
};

// Each cell has a forward and a backward of each micro-batch. What is there twice or too early shows
// later, where stashes and messages are known.
absl::Status CheckNothingMissing(const OwnSchedule& own, int64_t micro_batches) {
  std::set<std::tuple<int, int, Opcode>> words;
  for (const StageProgram& program : own.programs) {
    for (const Instruction& i : program.instructions) {
      words.emplace(i.cell.value, i.micro_batch.value, i.op);
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
      if (!missing.has_value()) continue;
      const std::string word = FormatInstruction({*missing, MicroBatchId(m), CellId(cell)},
                                                 !own.placement.empty());
      return Bad(absl::StrCat("stage ", program.stage.value, ": ", word, " is missing\n",
                              MarkInstruction(program, program.instructions.size())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OwnSchedule> ParseOwnSchedule(const std::string& text,
                                             const OwnScheduleShape& shape) {
  const std::string lines = Lines(text);
  OwnSchedule own;
  ASSIGN_OR_RETURN(own.programs,
                   Annotate(ParsePrograms(lines, absl::StrContains(lines, '.')), kField));
  if (std::ssize(own.programs) != shape.stages) {
    return Bad(absl::StrCat("is for ", own.programs.size(), " stages, a line each, and pipeline.stages is ",
                            shape.stages, "; write a text for ", shape.stages,
                            " or change pipeline.stages"));
  }
  Places places(shape);
  for (const StageProgram& program : own.programs) {
    RETURN_IF_ERROR(places.Add(program));
    own.complete = own.complete ||
                   std::any_of(program.instructions.begin(), program.instructions.end(),
                               [](const Instruction& i) { return !IsWork(i.op); });
  }
  ASSIGN_OR_RETURN(own.placement, places.Placement());
  if (!own.complete) RETURN_IF_ERROR(CheckNothingMissing(own, shape.micro_batches));
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
