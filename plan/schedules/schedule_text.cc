// The text form of schedules: printer and parser are exact inverses.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_mark.h"

namespace stagecoach {
namespace {

// In the order of Opcode.
constexpr std::string_view kOpText[] = {"in", "<a", "F",  ">a", "t",  "L",  "<g", "R", "B",
                                        "I",  "W",  ">g", "<v", ">v", "<c", "T",  ">c"};
static_assert(std::size(kOpText) == kOpcodes);

// Digits without sign or leading zero, below 2^31: one text per number.
std::optional<int32_t> ParseNumber(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  int32_t value = 0;
  if (!digits || !absl::SimpleAtoi(std::string(text), &value)) return std::nullopt;
  return value;
}

// "3" of the stage's only cell, or "2.3" of cell 2.
struct Numbers {
  std::optional<int32_t> cell, micro_batch;
};

std::optional<Numbers> ParseNumbers(std::string_view text, bool of_micro_batch) {
  Numbers numbers;
  const size_t point = text.find('.');
  if (of_micro_batch && point != std::string_view::npos) {
    numbers.cell = ParseNumber(text.substr(0, point));
    if (!numbers.cell.has_value()) return std::nullopt;
    text.remove_prefix(point + 1);
  }
  if (!of_micro_batch && text.empty()) return numbers;
  std::optional<int32_t>& last = of_micro_batch ? numbers.micro_batch : numbers.cell;
  last = ParseNumber(text);
  if (!last.has_value()) return std::nullopt;
  return numbers;
}

// `only`: the stage's only cell; nullopt: it has several, and each word names one.
std::optional<Instruction> ParseInstruction(std::string_view text, std::optional<int> only) {
  for (size_t i = 0; i < kOpcodes; ++i) {
    if (!text.starts_with(kOpText[i])) continue;
    const Opcode op = static_cast<Opcode>(i);
    const std::optional<Numbers> numbers =
        ParseNumbers(text.substr(kOpText[i].size()), IsOfMicroBatch(op));
    if (!numbers.has_value() || numbers->cell.has_value() == only.has_value()) return std::nullopt;
    return Instruction{op, MicroBatchId(numbers->micro_batch.value_or(0)),
                       CellId(only.has_value() ? *only : *numbers->cell)};
  }
  return std::nullopt;
}

// The beginning of a word that nobody wrote by hand.
std::string Shown(const std::string& word) {
  const std::string begin = word.substr(0, 40);
  return begin.substr(0, begin.size() - UnfinishedBytes(begin));
}

absl::Status ParseError(int stage, const std::vector<std::string>& words, size_t bad,
                        const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("schedule text: ", what, "\n", MarkWord(StageLabel(stage), words, bad)));
}

absl::StatusOr<StageProgram> ParseLine(const std::string& line, int stage,
                                       bool with_cells) {
  const std::string label = StageLabel(stage);
  const std::string text(absl::StripAsciiWhitespace(line));
  if (!text.starts_with(label)) {
    return absl::InvalidArgumentError(absl::StrCat("schedule text: line \"", Shown(text),
                                                   "\" must begin with \"", label,
                                                   "\"; stages stand in order from 0"));
  }
  StageProgram program{.stage = StageId(stage), .instructions = {}};
  const std::vector<std::string> words =
      absl::StrSplit(text.substr(label.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  const std::optional<int> only = with_cells ? std::nullopt : std::optional(stage);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::optional<Instruction> instruction = ParseInstruction(words[i], only);
    if (!instruction.has_value()) {
      return ParseError(stage, words, i,
                        absl::StrCat("stage ", stage, ": \"", Shown(words[i]),
                                     "\" is no instruction; want in <a F >a t L <g R B I W >g and ",
                                     only.has_value()
                                         ? "the number of a micro-batch, or <v >v <c T >c"
                                         : "the numbers of a cell and a micro-batch, as F2.0, or "
                                           "<v >v <c T >c and the number of a cell"));
    }
    program.instructions.push_back(*instruction);
  }
  return program;
}

}  // namespace

std::string StageLabel(int stage) { return absl::StrCat("stage ", stage, ":"); }

std::string MarkWord(const std::string& label, const std::vector<std::string>& words, size_t bad) {
  // A program of hundreds of micro-batches is thousands of words; show what stands around the
  // place.
  constexpr size_t kAround = 12;
  const size_t from = bad > kAround ? bad - kAround : 0;
  const size_t to = std::min(words.size(), bad + kAround + 1);
  std::string line = label;
  if (from > 0) absl::StrAppend(&line, " ...");
  for (size_t i = from; i < to; ++i) {
    if (i == bad) {
      absl::StrAppend(&line, " [[", Shown(words[i]), "]]");
    } else {
      absl::StrAppend(&line, " ", Shown(words[i]));
    }
  }
  if (to < words.size()) absl::StrAppend(&line, " ...");
  if (bad >= words.size()) absl::StrAppend(&line, " [[end]]");
  return line;
}

std::string MarkInstruction(const StageProgram& program, size_t bad, bool with_cell) {
  std::vector<std::string> words;
  words.reserve(program.instructions.size());
  for (const Instruction& instruction : program.instructions) {
    words.push_back(FormatInstruction(instruction, with_cell));
  }
  return MarkWord(StageLabel(program.stage.value), words, bad);
}

std::string FormatInstruction(const Instruction& instruction, bool with_cell) {
  const size_t op = static_cast<size_t>(instruction.op);
  std::string text(op < kOpcodes ? kOpText[op] : "?");
  const bool of_micro_batch = IsOfMicroBatch(instruction.op) || op >= kOpcodes;
  if (with_cell) absl::StrAppend(&text, instruction.cell.value, of_micro_batch ? "." : "");
  if (of_micro_batch) absl::StrAppend(&text, instruction.micro_batch.value);
  return text;
}

std::string FormatProgram(const StageProgram& program, bool with_cell) {
  std::string text = StageLabel(program.stage.value);
  for (const Instruction& instruction : program.instructions) {
    absl::StrAppend(&text, " ", FormatInstruction(instruction, with_cell));
  }
  return text;
}

std::string FormatSchedule(const Schedule& schedule) {
  std::string text;
  for (const StageProgram& program : schedule.programs) {
    absl::StrAppend(&text, FormatProgram(program, !schedule.options.placement.empty()), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<StageProgram>> ParsePrograms(const std::string& text,
                                                        bool with_cells) {
  std::vector<StageProgram> programs;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipWhitespace()))) {
    ASSIGN_OR_RETURN(StageProgram program,
                     ParseLine(line, static_cast<int>(programs.size()), with_cells));
    programs.push_back(std::move(program));
  }
  if (programs.empty()) return absl::InvalidArgumentError("schedule text: no program");
  return programs;
}

}  // namespace stagecoach
