#include "services/common/observe/log_ring.h"

#include <algorithm>
#include <utility>

#include "base/errors/check.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

// Not in the middle of a character.
std::string Cut(std::string text) {
  if (text.size() <= kLongestLogLine) return text;
  size_t end = kLongestLogLine;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace

LogRing::LogRing(size_t lines) : capacity_(lines) { CHECK(lines > 0) << "a ring has lines"; }

void LogRing::Append(LogEntry entry) {
  // A protobuf string must be UTF-8, and a path in an error message need not be.
  entry.message = Cut(ShownText(Cut(std::move(entry.message))));
  entry.job_id = Cut(ShownName(Cut(std::move(entry.job_id))));
  std::lock_guard<std::mutex> lock(mutex_);
  entry.number = ++newest_;
  if (lines_.size() < capacity_) {
    lines_.push_back(std::move(entry));
  } else {
    lines_[(entry.number - 1) % capacity_] = std::move(entry);
  }
}

LogRing::Page LogRing::Read(uint64_t after, const std::string& job, size_t limit,
                            double none_until) const {
  const auto wanted = [&](const LogEntry& entry) {
    if (job.empty() || entry.job_id == job) return true;
    return entry.job_id.empty() && (none_until == 0 || entry.unix_seconds <= none_until);
  };
  Page page;
  std::lock_guard<std::mutex> lock(mutex_);
  page.newest = newest_;
  const uint64_t oldest = newest_ - lines_.size() + 1;
  for (uint64_t number = newest_; number >= oldest && number > after; --number) {
    if (limit > 0 && page.lines.size() == limit) break;
    const LogEntry& entry = lines_[(number - 1) % capacity_];
    if (wanted(entry)) page.lines.push_back(entry);
  }
  std::reverse(page.lines.begin(), page.lines.end());
  return page;
}

v1::LogLine ToProto(const LogEntry& entry, const std::string& source) {
  v1::LogLine line;
  line.set_number(entry.number);
  line.set_unix_seconds(entry.unix_seconds);
  line.set_level(entry.level);
  line.set_source(source);
  line.set_job_id(entry.job_id);
  if (entry.step.has_value()) line.set_step(*entry.step);
  line.set_message(entry.message);
  return line;
}

}  // namespace stagecoach
