#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/files/gzip.h"
#include "base/utf8.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/scores/line_file.h"
#include "services/cli/trained/perplexity.h"

namespace stagecoach {
namespace {

absl::StatusOr<std::string> TextOf(const std::string& path) {
  const auto refuse = [&path](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(ShownName(path), ": ", why));
  };
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return refuse("is no plain file; name one");
  if (info.st_size > kMostLineFileBytes) {
    return refuse(absl::StrCat("has ", info.st_size, " bytes; at most ", kMostLineFileBytes,
                               " are read: give a part of it"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(std::strerror(errno));
  std::string text(static_cast<size_t>(info.st_size), '\0');
  file.read(text.data(), std::ssize(text));
  if (!file) return refuse("cannot be read");
  if (LooksLikeGzip(text)) return refuse("is gzip data; unpack it first");
  return text;
}

void PrintLoss(const PerplexityOptions& options, const std::string& weights, const TextLoss& loss,
               const CommandContext& context) {
  if (context.output == OutputFormat::kTable) {
    return context.console->PrintLine(absl::StrFormat(
        "perplexity %.3f, loss %.4f a token, %.4f bits a byte (%d tokens, %d bytes)",
        loss.perplexity(), loss.loss(), loss.bits_per_byte(), loss.tokens, loss.bytes));
  }
  const nlohmann::ordered_json answer = {{"weights", weights},
                                         {"file", options.file},
                                         {"tokens", loss.tokens},
                                         {"bytes", loss.bytes},
                                         {"loss", loss.loss()},
                                         {"perplexity", loss.perplexity()},
                                         {"bits_per_byte", loss.bits_per_byte()}};
  context.console->PrintLine(answer.dump(-1, ' ', /*ensure_ascii=*/false,
                                         nlohmann::ordered_json::error_handler_t::replace));
}

absl::StatusOr<int> Run(const PerplexityOptions& options, CommandContext& context) {
  ASSIGN_OR_RETURN(const std::string text, TextOf(options.file));
  ASSIGN_OR_RETURN(const FoundWriter found,
                   FindWriter(Writes::kText, options.weights, options.tokenizer, context));
  const auto goes_on = [&context] { return !context.stop->requested(); };
  ASSIGN_OR_RETURN(const TextLoss loss, Annotate(LossOfText(found.network, text, goes_on),
                                                 std::string(ShownName(options.file))));
  if (context.stop->requested()) return context.stop->reason();
  PrintLoss(options, found.name, loss, context);
  return kExitSuccess;
}

}  // namespace

int RunPerplexity(const PerplexityOptions& options, CommandContext& context) {
  const absl::StatusOr<int> code = Run(options, context);
  return code.ok() ? *code : context.console->Fail(code.status());
}

}  // namespace stagecoach
