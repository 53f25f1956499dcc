#include "services/cli/output/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no column, and neither does a colour
// ("\x1b[32m").
size_t Columns(const std::string& text) {
  size_t columns = 0;
  bool in_color = false;
  for (const char c : text) {
    if (c == '\x1b') in_color = true;
    if (!in_color && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++columns;
    if (c == 'm') in_color = false;
  }
  return columns;
}

}  // namespace

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  CHECK(error == std::errc()) << "no double is longer than 24 characters";
  return std::string(buffer.data(), end);
}

std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

std::string FormatBytes(int64_t bytes) {
  const std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrCat(bytes, " B");
  return absl::StrFormat("%.1f %s", value, units[unit]);
}

std::string FormatCount(double count) {
  const std::array<const char*, 5> units = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < units.size()) {
    count /= 1000;
    ++unit;
  }
  if (unit == 0 || count >= 100) return absl::StrFormat("%.0f%s", count, units[unit]);
  return absl::StrFormat("%.1f%s", count, units[unit]);
}

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto total = static_cast<int64_t>(std::llround(std::min(seconds, 1e12)));
  if (total < 60) return absl::StrFormat("%ds", total);
  if (total < 3600) return absl::StrFormat("%dm%02ds", total / 60, total % 60);
  if (total < 86400) return absl::StrFormat("%dh%02dm", total / 3600, total / 60 % 60);
  return absl::StrFormat("%dd%02dh", total / 86400, total / 3600 % 24);
}

std::string FormatSeconds(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.2f s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.1f ms", seconds * 1e3);
  return absl::StrFormat("%.0f us", seconds * 1e6);
}

std::string FormatUnixTime(double seconds) {
  if (seconds <= 0) return "-";
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  localtime_r(&time, &parts);
  std::array<char, 32> buffer;
  const size_t size = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return std::string(buffer.data(), size);
}

Table::Table(std::vector<std::string> header, std::vector<size_t> right)
    : right_(std::move(right)) {
  rows_.push_back(std::move(header));
}

void Table::Add(std::vector<std::string> row) {
  CHECK_EQ(row.size(), rows_[0].size());
  rows_.push_back(std::move(row));
}

std::string Table::ToString() const {
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::string result;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Columns(row[i]), ' ');
      const bool right = std::find(right_.begin(), right_.end(), i) != right_.end();
      absl::StrAppend(&line, i == 0 ? "" : "  ", right ? padding : "", row[i],
                      right ? "" : padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&result, line, "\n");
  }
  return result;
}

}  // namespace stagecoach
