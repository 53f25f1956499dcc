#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/threads/clock.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/log_text.h"

namespace stagecoach {
namespace {

constexpr double kPatienceSeconds = 60;

// Prints what comes, each line once, also when the stream had to be opened anew.
class LogPrinter {
 public:
  LogPrinter(const LogsOptions& options, Console* console) : options_(options), console_(console) {}

  void OnLines(const v1::ReadLogsResponse& response) {
    std::string text;
    for (const v1::LogLine& line : response.lines()) {
      if (!IsNew(line)) continue;
      text += options_.json ? ToJson(line, OutputFormat::kNdjson) : LogText(line, options_.job);
    }
    if (!text.empty()) console_->Print(text);
    for (const std::string& server : response.unreachable()) {
      if (unreachable_.insert(server).second) {
        console_->Note(absl::StrCat("stagecoach: missing in the logs: ", server));
      }
    }
  }

 private:
  bool IsNew(const v1::LogLine& line) {
    // With `tail` the first line says from when on lines are wanted; a stream that is opened anew
    // gives older ones too.
    if (!oldest_.has_value()) oldest_ = line.unix_seconds();
    if (line.unix_seconds() < *oldest_) return false;
    // A server that was restarted counts from 1 again, later.
    std::pair<uint64_t, double>& last = last_[line.source()];
    if (line.number() <= last.first && line.unix_seconds() <= last.second) return false;
    last = {line.number(), line.unix_seconds()};
    return true;
  }

  const LogsOptions& options_;
  Console* const console_;
  std::map<std::string, std::pair<uint64_t, double>> last_;  // number and time, by source
  std::optional<double> oldest_;
  std::set<std::string> unreachable_;
};

v1::ReadLogsRequest RequestOf(const LogsOptions& options) {
  v1::ReadLogsRequest request;
  request.set_job_id(options.job);
  if (options.stage >= 0) request.set_stage(options.stage);
  request.set_follow(options.follow);
  request.set_tail(options.tail);
  return request;
}

}  // namespace

int RunLogs(const LogsOptions& options, CommandContext& context) {
  // To a coordinator no id means all jobs: an unset variable printed them.
  if (options.job.empty()) {
    return context.console->Fail(
        absl::NotFoundError("the job's id is empty; `list` shows all jobs"));
  }
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  v1::ReadLogsRequest request = RequestOf(options);
  LogPrinter printer(options, context.console);
  const Clock& clock = *SystemClock::Get();
  const auto retry = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.retry_seconds));
  bool answered = false;
  double last_answer_seconds = clock.MonotonicSeconds();
  const auto on_lines = [&](const v1::ReadLogsResponse& response) {
    answered = true;
    last_answer_seconds = clock.MonotonicSeconds();
    printer.OnLines(response);
  };
  while (true) {
    const absl::Status status = (*client)->ReadLogs(request, on_lines, context.stop);
    if (context.stop->requested()) return context.console->Fail(context.stop->reason());
    if (status.ok()) return kExitSuccess;
    const bool again = options.follow && answered && IsPassing(status) &&
                       clock.MonotonicSeconds() - last_answer_seconds < kPatienceSeconds;
    if (!again) return context.console->Fail(status);
    request.set_tail(0);  // what was missed meanwhile is wanted too; known lines are left out
    if (context.stop->WaitFor(retry)) return context.console->Fail(context.stop->reason());
  }
}

}  // namespace stagecoach
