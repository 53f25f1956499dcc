#include <sys/wait.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/files/file_system.h"
#include "services/cli/commands/commands.h"
#include "services/cli/local/spawn.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/new_file.h"
#include "services/cli/output/tokenizer_text.h"
#include "stage/tokens/sentence_piece/model_file.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

constexpr char kProgram[] = "stagecoach-train-tokenizer";

// SentencePiece would end the process for these, or take them for something else.
absl::Status CheckSymbols(const std::string& symbols) {
  if (symbols.empty()) return absl::OkStatus();
  std::set<std::string> seen = {"<pad>", "<unk>", "<s>", "</s>"};
  const std::vector<std::string> all = absl::StrSplit(symbols, ',');
  for (const std::string& symbol : all) {
    const std::string shown = absl::StrCat("\"", ShownName(symbol), "\"");
    if (symbol.empty() || !IsUtf8Text(symbol)) {
      return FieldError("--user-symbols", shown, "give texts in UTF-8 with a comma between them");
    }
    if (symbol.size() >= kMostPieceBytes) {
      return FieldError("--user-symbols", absl::StrCat(symbol.size(), " bytes"),
                        absl::StrCat("must be < ", kMostPieceBytes));
    }
    if (ByteOfPiece(symbol) >= 0 || !seen.insert(symbol).second) {
      return FieldError("--user-symbols", shown, "is there already; give each symbol once");
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> Arguments(const TrainTokenizerOptions& options,
                                   const std::string& output) {
  std::vector<std::string> arguments = {absl::StrCat(ProgramFolder(), "/", kProgram),
                                        "output=" + output};
  for (const std::string& input : options.inputs) arguments.push_back("input=" + input);
  const std::vector<std::string> library = {
      absl::StrCat("vocab_size=", options.vocabulary),
      absl::StrCat("model_type=", options.model),
      absl::StrCat("character_coverage=", options.character_coverage),
      absl::StrCat("byte_fallback=", options.byte_fallback ? "true" : "false"),
      absl::StrCat("user_defined_symbols=", options.user_symbols),
      absl::StrCat("num_threads=", options.threads),
      absl::StrCat("minloglevel=", options.verbose ? 0 : 2),
      "pad_id=0",
      "unk_id=1",
      "bos_id=2",
      "eos_id=3"};
  arguments.insert(arguments.end(), library.begin(), library.end());
  return arguments;
}

// "3 text": the code and the text of a status.
absl::Status StatusOf(std::string_view answer) {
  const size_t space = answer.find(' ');
  int code = 0;
  if (space == answer.npos || !absl::SimpleAtoi(std::string(answer.substr(0, space)), &code)) {
    return absl::InternalError(std::string(answer));
  }
  return absl::Status(static_cast<absl::StatusCode>(code), std::string(answer.substr(space + 1)));
}

absl::Status Train(const TrainTokenizerOptions& options, const std::string& output,
                   CommandContext& context) {
  ASSIGN_OR_RETURN(const ProgramAnswer answer,
                   RunProgram(Arguments(options, output), !options.verbose, context.stop));
  if (WIFEXITED(answer.wait_status) && WEXITSTATUS(answer.wait_status) == 0) {
    return absl::OkStatus();
  }
  if (!answer.output.empty()) return StatusOf(answer.output);
  return absl::InternalError(absl::StrCat(kProgram, " ended with ", DescribeEnd(answer.wait_status),
                                          options.verbose ? "" : "; --verbose shows its log"));
}

}  // namespace

int RunTrainTokenizer(const TrainTokenizerOptions& options, CommandContext& context) {
  absl::Status status = CheckSymbols(options.user_symbols);
  if (status.ok()) {
    status =
        WriteNewFile(*PosixFileSystem(), options.output, "name another file with --output",
                     [&](const std::string& output) { return Train(options, output, context); });
  }
  if (!status.ok()) return context.console->Fail(status);
  const auto tokenizer = Tokenizer::Load(*PosixFileSystem(), options.output);
  if (!tokenizer.ok()) return context.console->Fail(tokenizer.status());
  context.console->Print(TokenizerText(options.output, **tokenizer, 0, context.output));
  return kExitSuccess;
}

}  // namespace stagecoach
