// stagecoach-train-tokenizer: trains a SentencePiece model, for `stagecoach tokenizer train`, which
// starts it. A program of its own, because SentencePiece's library and gRPC's cannot live in one
// process (stage/tokens/CMakeLists.txt).
// Arguments: output=FILE, input=FILE for each text, and NAME=VALUE for the library.
// Output:    an error's code and text on standard output; nothing after success. The library's log
//            goes to standard error. It may also end this process.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "stage/tokens/library/sentencepiece_library.h"
#include "stage/tokens/text_lines.h"

namespace stagecoach {
namespace {

// The library skips lines of more than 4192 bytes.
constexpr size_t kMostLineBytes = 4096;

struct Arguments {
  std::vector<std::string> inputs;
  std::string output;
  std::unordered_map<std::string, std::string> options;
};

Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name(argument.substr(0, equals));
    const std::string value(equals == argument.npos ? "" : argument.substr(equals + 1));
    if (name == "input") {
      arguments.inputs.push_back(value);
    } else if (name == "output") {
      arguments.output = value;
    } else {
      arguments.options[name] = value;
    }
  }
  return arguments;
}

absl::StatusOr<std::vector<std::string>> LinesOf(const std::vector<std::string>& inputs) {
  std::vector<std::string> lines;
  const auto take = [&lines](std::string_view part, bool) {
    if (!part.empty()) lines.emplace_back(part);
    return absl::OkStatus();
  };
  for (const std::string& input : inputs) {
    RETURN_IF_ERROR(ReadLinesOf(input, kMostLineBytes, take));
  }
  if (lines.empty()) return absl::InvalidArgumentError("--input: there is no line of text");
  return lines;
}

// The number behind `text` in the reason; empty: `text` is not there.
std::string NumberBehind(std::string_view reason, std::string_view text) {
  const size_t at = reason.find(text);
  if (at == reason.npos) return "";
  const size_t begin = at + text.size();
  return std::string(reason.substr(begin, reason.find_first_not_of("0123456789", begin) - begin));
}

// The library's reason by the options of the command.
absl::Status Explain(const std::string& reason, const std::string& vocabulary) {
  if (const std::string most = NumberBehind(reason, "Please set it to a value <= ");
      !most.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--vocabulary: ", vocabulary, "; must be <= ", most,
                     ": the text has no more pieces; ask for fewer, or give more text"));
  }
  if (absl::StrContains(reason, "smaller than required_chars")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--vocabulary: ", vocabulary, "; must be >= ", NumberBehind(reason, " vs "),
        " for the characters of the text; ask for more, or lower --character-coverage"));
  }
  return absl::InternalError(absl::StrCat("SentencePiece: ", reason));
}

absl::Status WriteModel(const std::string& path, std::string_view model) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, PosixFileSystem()->Create(path));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(model))));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status Train(const Arguments& arguments) {
  ASSIGN_OR_RETURN(std::vector<std::string> lines, LinesOf(arguments.inputs));
  size_t next = 0;
  const auto next_line = [&](std::string* line) {
    if (next == lines.size()) return false;
    *line = std::move(lines[next++]);
    return true;
  };
  std::string model;
  const std::string reason = TrainByLibrary(arguments.options, next_line, &model);
  if (!reason.empty()) return Explain(reason, arguments.options.at("vocab_size"));
  return WriteModel(arguments.output, model);
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read the answer
  const stagecoach::Arguments arguments = stagecoach::ParseArguments(argc, argv);
  if (arguments.output.empty() || !arguments.options.contains("vocab_size")) {
    std::fputs("stagecoach-train-tokenizer: use `stagecoach tokenizer train`\n", stderr);
    return 2;
  }
  const absl::Status status = stagecoach::Train(arguments);
  if (status.ok()) return 0;
  const std::string answer = absl::StrCat(status.raw_code(), " ", status.message());
  std::fputs(answer.c_str(), stdout);
  return 1;
}
