#include "base/threads/work_words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace stagecoach {
namespace {

thread_local WorkWords* current_words = nullptr;

constexpr absl::string_view kColon = ": ", kPercent = " %";

}  // namespace

void WorkWords::Tell(std::string words) {
  std::lock_guard<std::mutex> lock(mutex_);
  words_ = std::move(words);
}

std::string WorkWords::words() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return words_;
}

WorkWordsScope::WorkWordsScope(WorkWords* words) : outer_(current_words) { current_words = words; }
WorkWordsScope::~WorkWordsScope() { current_words = outer_; }

void TellWork(std::string words) {
  if (current_words != nullptr) current_words->Tell(std::move(words));
}

std::string ShareText(absl::string_view what, int64_t done, int64_t all) {
  const double share =
      all > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(all), 0.0, 1.0) : 1.0;
  const int percent = done >= all ? 100 : std::min(99, static_cast<int>(share * 100));
  return absl::StrCat(what, kColon, percent, kPercent);
}

std::optional<int> PercentIn(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, kPercent)) return std::nullopt;
  const size_t colon = text.rfind(kColon);
  int percent = 0;
  if (colon == text.npos || !absl::SimpleAtoi(text.substr(colon + kColon.size()), &percent)) {
    return std::nullopt;
  }
  return percent >= 0 && percent <= 100 ? std::optional(percent) : std::nullopt;
}

}  // namespace stagecoach
