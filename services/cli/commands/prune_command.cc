// Frees the disks of the coordinator: single checkpoints, ended jobs.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/threads/clock.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/confirm.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

std::string CountText(size_t jobs) { return absl::StrCat(jobs, jobs == 1 ? " job" : " jobs"); }

int64_t BytesOfAll(const std::vector<v1::Job>& jobs) {
  int64_t bytes = 0;
  for (const v1::Job& job : jobs) bytes += TotalBytes(job.usage());
  return bytes;
}

// With what they occupy. One that is gone meanwhile is left out.
absl::StatusOr<std::vector<v1::Job>> WithUsage(const std::vector<v1::Job>& jobs,
                                               JobClient& client) {
  std::vector<v1::Job> found;
  for (const v1::Job& job : jobs) {
    absl::StatusOr<v1::Job> one = client.GetWithUsage(job.id());
    if (absl::IsNotFound(one.status())) continue;
    RETURN_IF_ERROR(one.status());
    found.push_back(*std::move(one));
  }
  return found;
}

void PrintJobs(const std::vector<v1::Job>& jobs, CommandContext& context) {
  if (context.output == OutputFormat::kTable) {
    if (!jobs.empty()) context.console->Print(UsageTable(jobs, *context.console));
    return;
  }
  std::vector<std::string> lines;
  for (const v1::Job& job : jobs) {
    v1::RemoveJobResponse freed;
    freed.set_id(job.id());
    *freed.mutable_freed() = job.usage();
    lines.push_back(ToJson(freed, context.output));
  }
  const std::string text = absl::StrJoin(lines, context.output == OutputFormat::kJson ? "," : "");
  context.console->Print(
      context.output == OutputFormat::kJson ? absl::StrCat("{\"jobs\":[", text, "]}\n") : text);
}

struct Pruned {
  std::vector<v1::Job> gone;
  int refused = 0;
};

// A job that may not go is told and passed over.
absl::StatusOr<Pruned> RemoveAll(const std::vector<v1::Job>& jobs, JobClient& client,
                                 CommandContext& context) {
  Pruned pruned;
  for (const v1::Job& job : jobs) {
    if (context.stop != nullptr && context.stop->requested()) {
      return Annotate(context.stop->reason(), absl::StrCat("after ", CountText(pruned.gone.size()),
                                                           " were removed; run it again to go on"));
    }
    const absl::Status removed = client.RemoveJob(job.id()).status();
    if (removed.ok()) {
      pruned.gone.push_back(job);
    } else if (absl::IsFailedPrecondition(removed)) {
      context.console->Note(std::string(removed.message()));
      ++pruned.refused;
    } else if (!absl::IsNotFound(removed)) {  // an answer that was lost, or another call
      return Annotate(removed,
                      absl::StrCat("job ", job.id(), ", after ", CountText(pruned.gone.size()),
                                   " were removed; run it again to go on"));
    }
  }
  return pruned;
}

absl::StatusOr<int> Prune(const PruneOptions& options, CommandContext& context) {
  const bool asks = !options.yes && !options.dry_run;
  if (asks) {
    RETURN_IF_ERROR(CheckCanAsk("jobs prune removes jobs for good",
                                "add --yes, or --dry-run to see which jobs it would remove",
                                context));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client, context.connect(context.client));
  ASSIGN_OR_RETURN(const v1::ListJobsResponse list, client->List());
  ASSIGN_OR_RETURN(
      const std::vector<v1::Job> jobs,
      WithUsage(JobsToPrune(list, options, SystemClock::Get()->UnixSeconds()), *client));
  const std::string what =
      absl::StrCat(CountText(jobs.size()), ", ", FormatBytes(BytesOfAll(jobs)));
  if (options.dry_run) {
    PrintJobs(jobs, context);
    context.console->Note(absl::StrCat("would remove ", what));
    return kExitSuccess;
  }
  if (asks && !jobs.empty()) {
    for (const absl::string_view line : absl::StrSplit(UsageTable(jobs, *context.console), '\n')) {
      if (!line.empty()) context.console->Note(std::string(line));
    }
    ASSIGN_OR_RETURN(const bool sure, Confirmed(absl::StrCat("remove ", what, "?"), context));
    if (!sure) {
      context.console->Note("nothing was removed");
      return kExitFailed;
    }
  }
  ASSIGN_OR_RETURN(const Pruned pruned, RemoveAll(jobs, *client, context));
  PrintJobs(pruned.gone, context);
  context.console->Note(absl::StrCat("removed ", CountText(pruned.gone.size()), ", ",
                                     FormatBytes(BytesOfAll(pruned.gone)), " freed"));
  return pruned.refused == 0 ? kExitSuccess : kExitFailed;
}

}  // namespace

std::vector<v1::Job> JobsToPrune(const v1::ListJobsResponse& list, const PruneOptions& options,
                                 double now_unix_seconds) {
  std::vector<v1::Job> jobs;
  for (const v1::Job& job : list.jobs()) {
    const bool chosen = std::count(options.states.begin(), options.states.end(), job.state()) > 0;
    // The coordinator keeps the entry of one that was set aside.
    if (chosen && job.has_finished_unix_seconds() && job.detail() != "set aside") {
      jobs.push_back(job);
    }
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const v1::Job& a, const v1::Job& b) {
    return a.finished_unix_seconds() > b.finished_unix_seconds();
  });
  jobs.erase(jobs.begin(), jobs.begin() + std::min(options.keep, std::ssize(jobs)));
  std::erase_if(jobs, [&](const v1::Job& job) {
    return job.finished_unix_seconds() + options.older_than_seconds > now_unix_seconds;
  });
  return jobs;
}

int RunPrune(const PruneOptions& options, CommandContext& context) {
  const absl::StatusOr<int> code = Prune(options, context);
  return code.ok() ? *code : context.console->Fail(code.status());
}

int RunRemoveCheckpoints(const RemoveCheckpointsOptions& options, CommandContext& context) {
  v1::RemoveCheckpointsRequest request;
  request.set_job_id(options.job);
  request.mutable_steps()->Assign(options.steps.begin(), options.steps.end());
  request.set_missing_ok(options.missing_ok);
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::RemoveCheckpointsResponse> removed =
      (*client)->RemoveCheckpoints(request);
  if (!removed.ok()) return context.console->Fail(removed.status());
  if (context.output != OutputFormat::kTable) {
    context.console->Print(ToJson(*removed, context.output));
  } else if (removed->removed().empty()) {
    context.console->Note(absl::StrCat("job ", options.job, ": no such checkpoint is left"));
  } else {
    context.console->Note(absl::StrCat("job ", options.job, ": removed the checkpoints of step ",
                                       absl::StrJoin(removed->removed(), ", "), "; ",
                                       FormatBytes(removed->freed_bytes()), " freed"));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
