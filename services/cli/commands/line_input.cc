#include "services/cli/commands/line_input.h"

#include <poll.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kMostLineBytes = size_t{1} << 20;

// Standard input may give nothing for long: the stop is seen meanwhile.
absl::StatusOr<size_t> ReadInput(const CommandContext& context, std::span<uint8_t> into) {
  constexpr int kLookMillis = 100;
  while (!context.stop->requested()) {
    pollfd input = {.fd = context.input, .events = POLLIN, .revents = 0};
    const int ready = poll(&input, 1, kLookMillis);
    if (ready > 0) return ReadDescriptor(context.input, into);
    if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "standard input");
  }
  return context.stop->reason();
}

}  // namespace

std::string InputName(const std::string& file) {
  return file.empty() || file == "-" ? "standard input" : ShownName(file);
}

absl::Status ReadInputLines(const std::string& file, const CommandContext& context, size_t most,
                            TakeLine take, CutSpace space) {
  const auto stoppable = [&](std::string_view part, bool ends) {
    return context.stop->requested() ? context.stop->reason() : take(part, ends);
  };
  if (!file.empty() && file != "-") return ReadLinesOf(file, most, stoppable, space);
  const auto read = [&](std::span<uint8_t> into) { return ReadInput(context, into); };
  return Annotate(ReadLines(read, most, stoppable, space), "standard input");
}

absl::StatusOr<std::vector<std::string>> ReadAllInputLines(const std::string& file,
                                                           const CommandContext& context) {
  std::vector<std::string> lines;
  const auto take = [&lines](std::string_view part, bool ends) -> absl::Status {
    if (ends) {
      lines.emplace_back(part);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("line ", lines.size() + 1, ": has more than ",
                                                   kMostLineBytes, " bytes; divide it"));
  };
  RETURN_IF_ERROR(ReadInputLines(file, context, kMostLineBytes, take));
  return lines;
}

void LinePrinter::Begin() {
  if (context_.output != OutputFormat::kJson || std::exchange(begun_, true)) return;
  context_.console->Print(absl::StrCat("{\"", array_, "\": ["));
}

void LinePrinter::Print(absl::FunctionRef<std::string()> text, const nlohmann::ordered_json& said) {
  if (context_.output == OutputFormat::kTable) {
    context_.console->PrintLine(text());
    return;
  }
  Begin();
  const std::string line =
      said.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const bool array = context_.output == OutputFormat::kJson;
  context_.console->Print(array ? absl::StrCat(first_ ? "\n  " : ",\n  ", line) : line + "\n");
  first_ = false;
}

void LinePrinter::Finish() {
  Begin();
  if (context_.output == OutputFormat::kJson) context_.console->Print("\n]}\n");
}

}  // namespace stagecoach
