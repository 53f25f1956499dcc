// Text: numbers, times and tables as people and programs read them.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_TEXT_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace stagecoach {

// The shortest text that reads back as the same double, as JSON: the same bits give the same text.
// JSON has no infinity and no NaN: null.
std::string JsonNumber(double value);
// In quotes. Bytes that are not UTF-8 become U+FFFD: JSON has no others.
std::string JsonText(const std::string& text);

std::string FormatBytes(int64_t bytes);      // "1.5 MiB"
std::string FormatCount(double count);       // "999", "117k", "2.5M"
std::string FormatDuration(double seconds);  // "42s", "2m03s", "3h07m", "2d04h"
std::string FormatSeconds(double seconds);   // "1.25 s", "140 ms", "75 us"
std::string FormatUnixTime(double seconds);  // "2026-01-31 12:34:56", local time; "-" for 0

// Rows under a header, columns two blanks apart; columns listed in `right` are aligned right.
// Colours ("\x1b[32m") take no place.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<size_t> right = {});
  void Add(std::vector<std::string> row);
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first is the header
  std::vector<size_t> right_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_TEXT_H_
