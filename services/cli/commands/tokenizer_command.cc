// `stagecoach tokenizer show`, `encode` and `decode`.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/line_input.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/tokenizer_text.h"
#include "stage/tokens/text_lines.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

using Json = nlohmann::ordered_json;

// Ids of a line must not be cut.
constexpr size_t kMostIdBytes = size_t{64} << 20;

absl::StatusOr<std::vector<int32_t>> IdsOf(std::string_view line) {
  std::vector<int32_t> ids;
  const absl::string_view text(line.data(), line.size());
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", ShownName(std::string(word)), "\" is no id; give whole numbers"));
    }
    ids.push_back(id);
  }
  return ids;
}

int Finish(const absl::Status& status, LinePrinter* printer, CommandContext& context) {
  if (!status.ok()) return context.console->Fail(status);
  printer->Finish();
  return kExitSuccess;
}

}  // namespace

int RunShowTokenizer(const TokenizerOptions& options, CommandContext& context) {
  const auto tokenizer = Tokenizer::Load(*PosixFileSystem(), options.model);
  if (!tokenizer.ok()) return context.console->Fail(tokenizer.status());
  context.console->Print(TokenizerText(options.model, **tokenizer, options.first, context.output));
  return kExitSuccess;
}

int RunEncode(const TokenizerOptions& options, CommandContext& context) {
  const auto tokenizer = Tokenizer::Load(*PosixFileSystem(), options.model);
  if (!tokenizer.ok()) return context.console->Fail(tokenizer.status());
  LinePrinter printer(context, "lines");
  std::vector<int32_t> ids;  // of the line so far
  const auto take = [&](std::string_view part, bool ends) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<int32_t> more, (*tokenizer)->Encode(part));
    ids.insert(ids.end(), more.begin(), more.end());
    if (!ends) return absl::OkStatus();
    std::vector<std::string> pieces;
    if (options.pieces) {
      for (const int32_t id : ids) pieces.push_back((*tokenizer)->piece(id).text);
    }
    Json said = {{"ids", ids}};
    if (options.pieces) said["pieces"] = pieces;
    printer.Print(
        [&] { return options.pieces ? absl::StrJoin(pieces, " ") : absl::StrJoin(ids, " "); },
        said);
    ids.clear();
    return absl::OkStatus();
  };
  const absl::Status status =
      ReadInputLines(options.file, context, kMostPartBytes, take, (*tokenizer)->cut_space());
  return Finish(status, &printer, context);
}

int RunDecode(const TokenizerOptions& options, CommandContext& context) {
  const auto tokenizer = Tokenizer::Load(*PosixFileSystem(), options.model);
  if (!tokenizer.ok()) return context.console->Fail(tokenizer.status());
  LinePrinter printer(context, "lines");
  int64_t number = 1;
  const auto decode = [&](std::string_view line) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, IdsOf(line));
    return (*tokenizer)->Decode(ids);
  };
  const auto take = [&](std::string_view line, bool ends) -> absl::Status {
    const std::string where = absl::StrCat("line ", number++);
    if (!ends) return absl::InvalidArgumentError(absl::StrCat(where, " is too long to be ids"));
    ASSIGN_OR_RETURN(const std::string text, Annotate(decode(line), where));
    printer.Print([&] { return text; }, {{"text", text}});
    return absl::OkStatus();
  };
  return Finish(ReadInputLines(options.file, context, kMostIdBytes, take), &printer, context);
}

}  // namespace stagecoach
