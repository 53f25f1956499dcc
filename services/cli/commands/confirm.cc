#include "services/cli/commands/confirm.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr size_t kLongestAnswer = 64;  // bytes

}  // namespace

absl::Status CheckCanAsk(const std::string& what, const std::string& remedy,
                         const CommandContext& context) {
  if (isatty(context.input) == 1 && context.console->has_bar()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ", and standard input and error are no terminal to ask at: ", remedy,
                   "; nothing was removed"));
}

absl::StatusOr<bool> Confirmed(const std::string& question, CommandContext& context) {
  constexpr int kLookMillis = 100;
  context.console->Note(absl::StrCat(question, " [y/N]"));
  pollfd input = {.fd = context.input, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, kLookMillis) <= 0) {
    if (context.stop->requested()) return context.stop->reason();
  }
  char line[kLongestAnswer];
  const ssize_t count = read(context.input, line, sizeof(line));
  const std::string answer = absl::AsciiStrToLower(std::string(
      absl::StripAsciiWhitespace(absl::string_view(line, std::max<ssize_t>(count, 0)))));
  return answer == "y" || answer == "yes";
}

}  // namespace stagecoach
