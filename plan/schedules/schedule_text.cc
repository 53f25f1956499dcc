// The text form of schedules: printer and parser are exact inverses.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
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

std::optional<Instruction> ParseInstruction(std::string_view text) {
  for (size_t op = 0; op < kOpcodes; ++op) {
    if (!text.starts_with(kOpText[op])) continue;
    if (!IsOfMicroBatch(static_cast<Opcode>(op))) {
      if (text != kOpText[op]) return std::nullopt;
      return Instruction{static_cast<Opcode>(op)};
    }
    const std::optional<int32_t> number = ParseNumber(text.substr(kOpText[op].size()));
    if (!number.has_value()) return std::nullopt;
    return Instruction{static_cast<Opcode>(op), MicroBatchId(*number)};
  }
  return std::nullopt;
}

absl::Status ParseError(int stage, const std::vector<std::string>& words, size_t bad,
                        const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("schedule text: ", what, "\n", MarkWord(StageLabel(stage), words, bad)));
}

absl::StatusOr<StageProgram> ParseLine(const std::string& line, int stage) {
  const std::string label = StageLabel(stage);
  const std::string text(absl::StripAsciiWhitespace(line));
  if (!text.starts_with(label)) {
    return absl::InvalidArgumentError(absl::StrCat("schedule text: line \"", text.substr(0, 40),
                                                   "\" must begin with \"", label,
                                                   "\"; stages stand in order from 0"));
  }
  StageProgram program{.stage = StageId(stage), .instructions = {}};
  const std::vector<std::string> words =
      absl::StrSplit(text.substr(label.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  for (size_t i = 0; i < words.size(); ++i) {
    const std::optional<Instruction> instruction = ParseInstruction(words[i]);
    if (!instruction.has_value()) {
      return ParseError(stage, words, i,
                        absl::StrCat("stage ", stage, ": \"", words[i].substr(0, 40),
                                     "\" is no instruction; want in <a F >a t L <g R B I W >g and "
                                     "the number of a micro-batch, or <v >v <c T >c"));
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
      absl::StrAppend(&line, " [[", words[i], "]]");
    } else {
      absl::StrAppend(&line, " ", words[i]);
    }
  }
  if (to < words.size()) absl::StrAppend(&line, " ...");
  if (bad >= words.size()) absl::StrAppend(&line, " [[end]]");
  return line;
}

std::string MarkInstruction(const StageProgram& program, size_t bad) {
  std::vector<std::string> words;
  words.reserve(program.instructions.size());
  for (const Instruction& instruction : program.instructions) {
    words.push_back(FormatInstruction(instruction));
  }
  return MarkWord(StageLabel(program.stage.value), words, bad);
}

std::string FormatInstruction(const Instruction& instruction) {
  const size_t op = static_cast<size_t>(instruction.op);
  const std::string text(op < kOpcodes ? kOpText[op] : "?");
  return IsOfMicroBatch(instruction.op) || op >= kOpcodes
             ? absl::StrCat(text, instruction.micro_batch.value)
             : text;
}

std::string FormatSchedule(const Schedule& schedule) {
  std::string text;
  for (const StageProgram& program : schedule.programs) {
    absl::StrAppend(&text, StageLabel(program.stage.value));
    for (const Instruction& instruction : program.instructions) {
      absl::StrAppend(&text, " ", FormatInstruction(instruction));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

absl::StatusOr<std::vector<StageProgram>> ParsePrograms(const std::string& text) {
  std::vector<StageProgram> programs;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipWhitespace()))) {
    ASSIGN_OR_RETURN(StageProgram program, ParseLine(line, static_cast<int>(programs.size())));
    programs.push_back(std::move(program));
  }
  if (programs.empty()) return absl::InvalidArgumentError("schedule text: no program");
  return programs;
}

}  // namespace stagecoach
