#include "services/cli/output/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

constexpr int kDefaultColumns = 80;
constexpr char kClearLine[] = "\r\x1b[K";

constexpr char kRed[] = "31", kBoldRed[] = "1;31", kGreen[] = "32", kYellow[] = "33",
               kBlue[] = "36";

std::string Colored(const char* color, const std::string& text) {
  return absl::StrCat("\x1b[", color, "m", text, "\x1b[0m");
}

// nullptr: none.
const char* ColorOf(const std::string& state) {
  static const auto* const colors = new std::map<std::string, const char*>{
      {"SUCCEEDED", kGreen}, {"FAILED", kRed},  {"CANCELLED", kYellow},
      {"RUNNING", kBlue},    {"ready", kGreen}, {"busy", kBlue},
      {"draining", kYellow}, {"lost", kRed},    {"ok", kGreen}};
  const auto found = colors->find(state);
  return found == colors->end() ? nullptr : found->second;
}

// "[===>  ] 50% ..." with its done part in blue.
std::string ColoredBar(const std::string& line) {
  const size_t head = line.find('>'), end = line.find(']');
  const size_t done = std::min(head == std::string::npos ? end : head + 1, end);
  if (line.empty() || line[0] != '[' || done == std::string::npos || done < 2) return line;
  return absl::StrCat("[", Colored(kBlue, line.substr(1, done - 1)), line.substr(done));
}

bool IsSet(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::optional<OutputFormat> ParseOutputFormat(const std::string& name) {
  if (name == "table") return OutputFormat::kTable;
  if (name == "json") return OutputFormat::kJson;
  if (name == "ndjson") return OutputFormat::kNdjson;
  return std::nullopt;
}

Console::Options Console::DetectTerminals() {
  const char* term = getenv("TERM");
  const bool dumb = term == nullptr || std::string(term) == "dumb";
  const bool colors = !dumb && !IsSet("NO_COLOR");
  const bool notes_are_terminal = isatty(STDERR_FILENO) == 1 && !dumb;
  return {.notes_are_terminal = notes_are_terminal,
          .out_has_color = isatty(STDOUT_FILENO) == 1 && colors,
          .notes_have_color = notes_are_terminal && colors};
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

// What others sent may be part of it.
void Console::Note(const std::string& line) { WriteNote(ShownText(line)); }

void Console::WriteNote(const std::string& line) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!bar_.empty()) notes_ << kClearLine;
  notes_ << line << "\n" << bar_ << std::flush;
}

int Console::Fail(const absl::Status& status) {
  EndBar();
  const std::string name = "stagecoach:";
  WriteNote(absl::StrCat(options_.notes_have_color ? Colored(kBoldRed, name) : name, " ",
                         ShownText(std::string(status.message()))));
  return ExitCodeOf(status);
}

void Console::DrawBar(const std::string& line) {
  std::lock_guard<std::mutex> lock(mutex_);
  bar_ = options_.notes_have_color ? ColoredBar(line) : line;
  notes_ << kClearLine << bar_ << std::flush;
}

void Console::EndBar() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bar_.empty()) return;
  bar_.clear();
  notes_ << "\n" << std::flush;
}

void Console::ClearBar() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bar_.empty()) return;
  bar_.clear();
  notes_ << kClearLine << std::flush;
}

int Console::columns() const {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  // The last column is left free: some terminals wrap on it.
  return size.ws_col - 1;
}

std::string Console::ColoredState(const std::string& state) const {
  if (!options_.out_has_color) return state;
  const char* const color = ColorOf(state);
  return color == nullptr ? state : Colored(color, state);
}

}  // namespace stagecoach
