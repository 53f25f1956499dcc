#include "services/coordinator/watch/log_reader.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>
#include <utility>

namespace stagecoach {

// One poll. Every answer goes to a slot of its own; who comes last merges.
struct LogReader::Gathering {
  std::vector<StageTarget> targets;
  std::vector<absl::StatusOr<v1::GetStageLogsResponse>> answers;
  std::vector<v1::LogLine> lines;
  uint32_t limit = 0;                  // of the answer
  double none_until_unix_seconds = 0;  // 0: the job has not ended
  std::atomic<size_t> missing{0};
  std::function<void(v1::ReadLogsResponse)> done;
};

void LogReader::ReadOwn(Gathering& gathering) {
  Source& source = sources_[kCoordinator];
  const LogRing::Page page =
      own_->Read(source.newest, job_id_, gathering.limit, gathering.none_until_unix_seconds);
  source.newest = page.newest;
  for (const LogEntry& entry : page.lines) {
    gathering.lines.push_back(ToProto(entry, kCoordinator));
  }
}

void LogReader::Poll(const Wanted& wanted, std::function<void(v1::ReadLogsResponse)> done) {
  const std::vector<StageTarget>& targets = wanted.targets;
  auto gathering = std::make_shared<Gathering>();
  gathering->limit = wanted.tail == 0 ? kMostLines : std::min(wanted.tail, kMostLines);
  if (wanted.ended_unix_seconds > 0) {
    gathering->none_until_unix_seconds = wanted.ended_unix_seconds + kAfterEndSeconds;
  }
  gathering->targets = targets;
  gathering->answers.resize(targets.size(), absl::UnknownError("no answer yet"));
  gathering->done = std::move(done);
  gathering->missing = targets.size() + 1;  // one for this function
  if (wanted.own) ReadOwn(*gathering);
  std::vector<v1::GetStageLogsRequest> requests;  // no answer may change sources_ meanwhile
  for (const StageTarget& target : targets) {
    v1::GetStageLogsRequest request;
    request.set_after(sources_[target.peer.name].newest);
    request.set_job_id(job_id_);
    request.set_limit(gathering->limit);
    request.set_none_until_unix_seconds(gathering->none_until_unix_seconds);
    requests.push_back(std::move(request));
  }
  const auto part_done = [self = shared_from_this(), gathering] {
    if (gathering->missing.fetch_sub(1) == 1) self->Finish(*gathering);
  };
  for (size_t i = 0; i < targets.size(); ++i) {
    stages_->GetLogs(targets[i].peer, requests[i], kDeadlineSeconds,
                     [gathering, part_done, i](absl::StatusOr<v1::GetStageLogsResponse> answer) {
                       gathering->answers[i] = std::move(answer);
                       part_done();
                     });
  }
  part_done();
}

void LogReader::Finish(Gathering& gathering) {
  v1::ReadLogsResponse response;
  for (size_t i = 0; i < gathering.targets.size(); ++i) {
    const std::string& name = gathering.targets[i].peer.name;
    Source& source = sources_[name];
    absl::StatusOr<v1::GetStageLogsResponse>& answer = gathering.answers[i];
    if (!answer.ok()) {
      const std::string why = WhyMissing(name, answer.status());
      if (why != source.missing) response.add_unreachable(why);
      source.missing = why;
      continue;
    }
    source.missing.clear();
    // Numbers that fall back tell of a new process: the next poll reads it from its first line on.
    source.newest = answer->newest() < source.newest ? 0 : answer->newest();
    for (v1::LogLine& line : *answer->mutable_lines()) {
      line.set_source(name);
      gathering.lines.push_back(std::move(line));
    }
  }
  std::vector<v1::LogLine>& lines = gathering.lines;
  if (const double end = gathering.none_until_unix_seconds; end > 0) {
    std::erase_if(lines, [end](const v1::LogLine& line) {
      return line.job_id().empty() && line.unix_seconds() > end;
    });
  }
  std::stable_sort(lines.begin(), lines.end(), [](const v1::LogLine& a, const v1::LogLine& b) {
    return a.unix_seconds() < b.unix_seconds();
  });
  const size_t first = lines.size() - std::min<size_t>(lines.size(), gathering.limit);
  for (size_t i = first; i < lines.size(); ++i) *response.add_lines() = std::move(lines[i]);
  gathering.done(std::move(response));
}

}  // namespace stagecoach
