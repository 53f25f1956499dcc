#include "stage/snapshot/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace stagecoach {
namespace {

// What others take meanwhile must not end the process.
constexpr int64_t kFreeFactor = 2;
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

std::string TextOf(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Version 2 of control groups, and where it is not there version 1.
std::string EitherText(const char* path, const char* older) {
  std::string text = TextOf(path);
  return text.empty() ? TextOf(older) : text;
}

}  // namespace

int64_t AvailableMemory(const std::string& meminfo, const std::string& limit,
                        const std::string& use) {
  int64_t available = kUnknown;
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "MemAvailable:")) continue;
    absl::ConsumeSuffix(&rest, " kB");
    int64_t kilobytes = 0;
    if (absl::SimpleAtoi(rest, &kilobytes)) available = kilobytes * 1024;
  }
  int64_t most = 0, used = 0;  // "max" is no number: no limit
  if (absl::SimpleAtoi(limit, &most) && absl::SimpleAtoi(use, &used)) {
    available = std::min(available, std::max<int64_t>(most - used, 0));
  }
  return available;
}

absl::Status CheckMemory(int64_t bytes, int64_t available) {
  if (available / kFreeFactor >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a snapshot's shard of ", bytes, " bytes, and ", available,
                   " are free on this machine; at least twice as many must be"));
}

int64_t AvailableMemory() {
  return AvailableMemory(
      TextOf("/proc/meminfo"),
      EitherText("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
      EitherText("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"));
}

}  // namespace stagecoach
