#include "services/cli/output/log_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

// A message may carry a user's text: it must not move a terminal's cursor or look like more lines.
std::string Printable(const std::string& text) {
  return absl::StrReplaceAll(ShownText(text), {{"\n", "\\x0a"}});
}

}  // namespace

std::string LogText(const v1::LogLine& line, const std::string& job) {
  const double seconds = std::floor(line.unix_seconds());
  const int millis = static_cast<int>((line.unix_seconds() - seconds) * 1000);
  std::string text = absl::StrCat(FormatUnixTime(seconds), absl::StrFormat(".%03d ", millis),
                                  Printable(line.source()), " ", Printable(line.level()), " ");
  if (!line.job_id().empty() && line.job_id() != job) {
    absl::StrAppend(&text, "job=", Printable(line.job_id()), " ");
  }
  if (line.has_step()) absl::StrAppend(&text, "step=", line.step(), " ");
  return absl::StrCat(text, Printable(line.message()), "\n");
}

}  // namespace stagecoach
