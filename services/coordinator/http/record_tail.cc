#include "services/coordinator/http/record_tail.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/job/view/record_page.h"
#include "services/coordinator/convert/convert_job.h"
#include "services/coordinator/http/http_json.h"
#include "services/coordinator/watch/await.h"

namespace stagecoach {
namespace {

constexpr int kPagesPerRefresh = 4;

}  // namespace

absl::StatusOr<RecordTail::Fetched> RecordTail::Fetch(const std::string& job,
                                                      uint64_t after) const {
  Fetched fetched;
  auto records = Await<absl::StatusOr<std::vector<JobRecord>>>(kLoopAnswerSeconds, [&](auto done) {
    manager_->Records(job, after, static_cast<int>(kPageRecords), done);
  });
  if (!records.has_value()) return fetched;
  if (!records->ok()) return records->status();
  fetched.full = IsFullPage(**records, kPageRecords);
  for (JobRecord& record : **records) {
    record.written.clear();
    fetched.lines.push_back({record.number, ToJson(ToProto(record))});
  }
  return fetched;
}

void RecordTail::Refresh(const std::string& job, Tail& tail) const {
  for (int page = 0; page < kPagesPerRefresh; ++page) {
    absl::StatusOr<Fetched> fetched =
        Fetch(job, tail.lines.empty() ? tail.base : tail.lines.back().number);
    tail.next = fetched.status();
    if (!fetched.ok()) break;
    for (Line& line : fetched->lines) tail.lines.push_back(std::move(line));
    if (!fetched->full) break;
  }
  while (tail.lines.size() > kMostLines) {
    tail.base = tail.lines.front().number;
    tail.lines.pop_front();
  }
}

RecordTail::Page RecordTail::PageOf(const std::vector<const Line*>& lines, uint64_t after,
                                    bool more) {
  Page page{"", lines.empty() ? after : lines.back()->number, more, absl::OkStatus()};
  for (const Line* line : lines) {
    absl::StrAppend(&page.json, page.json.empty() ? "" : ",", line->json);
  }
  return page;
}

RecordTail::Page RecordTail::Read(const std::string& job, uint64_t after, double version) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = tails_.find(job);
    if (found != tails_.end() && after >= found->second.base) {
      Tail& tail = found->second;
      if (tail.version != version) Refresh(job, tail);
      tail.version = version;
      auto line = std::upper_bound(
          tail.lines.begin(), tail.lines.end(), after,
          [](uint64_t number, const Line& other) { return number < other.number; });
      std::vector<const Line*> lines;
      for (; line != tail.lines.end() && lines.size() < kPageRecords; ++line) {
        lines.push_back(&*line);
      }
      Page page = PageOf(lines, after, line != tail.lines.end());
      if (!page.more) page.next = tail.next;
      return page;
    }
  }
  const absl::StatusOr<Fetched> own = Fetch(job, after);
  if (!own.ok()) return {"", after, false, own.status()};
  std::vector<const Line*> lines;
  for (const Line& line : own->lines) lines.push_back(&line);
  if (!own->full && !lines.empty()) {  // this reader has caught up: from here on it is shared
    std::lock_guard<std::mutex> lock(mutex_);
    if (tails_.size() >= kMostJobs && tails_.count(job) == 0) tails_.clear();
    Tail fresh;
    fresh.base = lines.back()->number;
    tails_.emplace(job, std::move(fresh));
  }
  return PageOf(lines, after, own->full);
}

}  // namespace stagecoach
