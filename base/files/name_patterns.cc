#include "base/files/name_patterns.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"

namespace stagecoach {
namespace {

constexpr size_t kMostPatterns = 256, kLongestPattern = 256;

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  // The usual way back: to the last star, which then takes one character more.
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

absl::Status CheckPatterns(const std::vector<std::string>& patterns, const std::string& path) {
  if (patterns.size() > kMostPatterns) {
    return FieldError(path, absl::StrCat(patterns.size(), " patterns"),
                      absl::StrCat("at most ", kMostPatterns, ": let * stand for more"));
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (patterns[i].size() <= kLongestPattern) continue;
    return FieldError(absl::StrCat(path, "[", i, "]"),
                      absl::StrCat("a pattern of ", patterns[i].size(), " bytes"),
                      absl::StrCat("at most ", kLongestPattern));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
