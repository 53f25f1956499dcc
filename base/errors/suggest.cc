#include "base/errors/suggest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stagecoach {
namespace {

// Longer words are not compared: the table below is quadratic, and nobody mistypes that far.
constexpr size_t kLongestWord = 64;

}  // namespace

int EditDistance(const std::string& a, const std::string& b) {
  const size_t rows = a.size() + 1, columns = b.size() + 1;
  std::vector<std::vector<int>> d(rows, std::vector<int>(columns, 0));
  for (size_t i = 0; i < rows; ++i) d[i][0] = static_cast<int>(i);
  for (size_t j = 0; j < columns; ++j) d[0][j] = static_cast<int>(j);
  for (size_t i = 1; i < rows; ++i) {
    for (size_t j = 1; j < columns; ++j) {
      const int replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d.back().back();
}

std::string DidYouMean(const std::string& wrong, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& name : known) {
    if (wrong.size() > kLongestWord) break;
    const int distance = EditDistance(wrong, name);
    if (best != nullptr && distance >= best_distance) continue;
    best = &name;
    best_distance = distance;
  }
  const int near = std::max(1, static_cast<int>(wrong.size()) / 3);
  if (best == nullptr || best_distance > near) return "";
  return absl::StrCat("; did you mean \"", *best, "\"?");
}

std::string Suggestion(const std::string& wrong, const std::vector<std::string>& known) {
  if (known.empty()) return "; nothing may stand here";
  const std::string meant = DidYouMean(wrong, known);
  if (!meant.empty()) return meant;
  return absl::StrCat("; known here: ", absl::StrJoin(known, ", "));
}

}  // namespace stagecoach
