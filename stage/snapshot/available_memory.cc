#include "stage/snapshot/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace stagecoach {
namespace {

// What others take meanwhile must not end the process.
constexpr int64_t kFreeFactor = 2;
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number behind a word at the beginning of a line; nothing: there is no such line.
std::optional<int64_t> NumberBehind(const std::string& text, absl::string_view word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, word)) continue;
    absl::ConsumeSuffix(&rest, " kB");
    int64_t number = 0;
    if (absl::SimpleAtoi(rest, &number)) return number;
  }
  return std::nullopt;
}

}  // namespace

int64_t AvailableMemory(const std::string& meminfo, const std::string& limit,
                        const std::string& use, const std::string& statistics) {
  int64_t available = kUnknown;
  if (const auto kilobytes = NumberBehind(meminfo, "MemAvailable:")) available = *kilobytes * 1024;
  int64_t most = 0, used = 0;  // "max" is no number: no limit
  if (!absl::SimpleAtoi(limit, &most) || !absl::SimpleAtoi(use, &used)) return available;
  // Of the group and those within: version 1 has names of its own for that.
  const bool first = NumberBehind(statistics, "total_inactive_file ").has_value();
  for (const char* word : {"inactive_file ", "active_file "}) {
    used -= NumberBehind(statistics, absl::StrCat(first ? "total_" : "", word)).value_or(0);
  }
  return std::min(available, std::max<int64_t>(most - std::max<int64_t>(used, 0), 0));
}

std::string MemoryGroup(const std::string& groups) {
  std::istringstream lines(groups);
  std::string found;
  for (std::string line; std::getline(lines, line);) {  // number:controllers:path
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller == "memory") return absl::StrCat("/memory", parts[2]);
    }
    if (parts[0] == "0" && parts[1].empty()) found = parts[2];
  }
  return found;
}

absl::Status CheckMemory(int64_t bytes, int64_t available) {
  if (available / kFreeFactor >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a snapshot's shard of ", bytes, " bytes, and ", available,
                   " are free on this machine; at least twice as many must be"));
}

// Of the process's own group and of those around it. In a container the path is the host's, and
// what it has is at the root.
int64_t AvailableMemory() {
  const std::string meminfo = TextOf("/proc/meminfo");
  int64_t available = AvailableMemory(meminfo, "", "", "");
  const auto look = [&](const std::string& folder) {
    for (const auto& [limit, use] :
         {std::pair("/memory.max", "/memory.current"),
          std::pair("/memory.limit_in_bytes", "/memory.usage_in_bytes")}) {
      available =
          std::min(available, AvailableMemory(meminfo, TextOf(folder + limit), TextOf(folder + use),
                                              TextOf(folder + "/memory.stat")));
    }
  };
  std::string group = MemoryGroup(TextOf("/proc/self/cgroup"));
  for (; group.size() > 1; group.resize(group.rfind('/'))) look("/sys/fs/cgroup" + group);
  look("/sys/fs/cgroup");
  look("/sys/fs/cgroup/memory");
  return available;
}

}  // namespace stagecoach
