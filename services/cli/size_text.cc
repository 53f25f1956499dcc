#include "services/cli/size_text.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr double kMostBytes = 0x1p62;

// "mib": 2^20; "" and "b": 1. 0: no unit.
double BytesOf(std::string_view unit) {
  if (unit.ends_with('b')) unit.remove_suffix(1);
  const double step = unit.ends_with('i') ? 1024 : 1000;
  if (unit.ends_with('i')) unit.remove_suffix(1);
  if (unit.empty()) return step == 1000 ? 1 : 0;
  const size_t power = std::string_view("kmgt").find(unit.front());
  if (unit.size() > 1 || power == std::string_view::npos) return 0;
  return std::pow(step, static_cast<double>(power + 1));
}

}  // namespace

absl::StatusOr<int64_t> ParseSize(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  const std::string_view all = lower;
  const size_t digits = std::min(all.find_first_not_of("0123456789."), all.size());
  const size_t unit = std::min(all.find_first_not_of(' ', digits), all.size());
  double number = 0;
  const bool is_number = absl::SimpleAtod(lower.substr(0, digits), &number);
  const double bytes = number * BytesOf(all.substr(unit));
  if (is_number && bytes >= 1 && bytes <= kMostBytes) return static_cast<int64_t>(bytes);
  return absl::InvalidArgumentError(
      absl::StrCat("want a size as 512MiB, 1.5GiB or 8GB, not \"", text, "\""));
}

}  // namespace stagecoach
