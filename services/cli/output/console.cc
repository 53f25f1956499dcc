#include "services/cli/output/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

constexpr int kDefaultColumns = 80;
constexpr char kClearLine[] = "\r\x1b[K";

bool IsSet(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

Console::Options Console::DetectTerminals() {
  const char* term = getenv("TERM");
  const bool dumb = term == nullptr || std::string(term) == "dumb";
  return {.notes_are_terminal = isatty(STDERR_FILENO) == 1 && !dumb,
          .out_has_color = isatty(STDOUT_FILENO) == 1 && !dumb && !IsSet("NO_COLOR")};
}

void Console::Print(const std::string& text) {
  bool lost = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // On a terminal both streams share the screen: data may not continue a drawn bar.
    if (!bar_.empty()) notes_ << kClearLine << std::flush;
    out_ << text << std::flush;
    if (!bar_.empty()) notes_ << bar_ << std::flush;
    lost = out_.fail();
  }
  if (lost && options_.on_output_lost) options_.on_output_lost();
}

void Console::Note(const std::string& line) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!bar_.empty()) notes_ << kClearLine;
  notes_ << line << "\n" << bar_ << std::flush;
}

int Console::Fail(const absl::Status& status) {
  EndBar();
  Note(absl::StrCat("stagecoach: ", std::string(status.message())));
  return ExitCodeOf(status);
}

void Console::DrawBar(const std::string& line) {
  std::lock_guard<std::mutex> lock(mutex_);
  bar_ = line;
  notes_ << kClearLine << bar_ << std::flush;
}

void Console::EndBar() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bar_.empty()) return;
  bar_.clear();
  notes_ << "\n" << std::flush;
}

int Console::columns() const {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  // The last column is left free: some terminals wrap on it.
  return size.ws_col - 1;
}

std::string Console::ColoredState(const std::string& state) const {
  if (!options_.out_has_color) return state;
  const char* color = state == "SUCCEEDED" ? "32" : state == "FAILED" ? "31" : "";
  return *color == '\0' ? state : absl::StrCat("\x1b[", color, "m", state, "\x1b[0m");
}

}  // namespace stagecoach
