// Lines in, lines out: commands that read a file or standard input line by line, and answer each line.
// Threads: the main thread. A stop is seen while standard input gives nothing.
// Errors:  those of stage/tokens/text_lines.h, naming the file or standard input; the stop's reason.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_LINE_INPUT_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_LINE_INPUT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "services/cli/commands/commands.h"
#include "stage/tokens/text_lines.h"

namespace stagecoach {

// "standard input" of "" and "-", else the file, for errors.
std::string InputName(const std::string& file);

// file: empty or "-" is standard input. most: bytes of a part of a line.
absl::Status ReadInputLines(const std::string& file, const CommandContext& context, size_t most,
                            TakeLine take, CutSpace space = CutSpace::kLeftOut);

// All lines. INVALID_ARGUMENT: a line is longer than 1 MiB.
absl::StatusOr<std::vector<std::string>> ReadAllInputLines(const std::string& file,
                                                           const CommandContext& context);

// Prints an answer a line: as text, or as JSON objects, which -o json has in one array. Before the first
// answer nothing is printed.
class LinePrinter {
 public:
  // array: its name in -o json
  LinePrinter(CommandContext& context, std::string array)
      : context_(context), array_(std::move(array)) {}
  // text is only made if it is printed.
  void Print(absl::FunctionRef<std::string()> text, const nlohmann::ordered_json& said);
  void Finish();

 private:
  void Begin();  // of the array, once

  CommandContext& context_;
  const std::string array_;
  bool begun_ = false, first_ = true;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_LINE_INPUT_H_
