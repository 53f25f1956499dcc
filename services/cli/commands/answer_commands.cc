// The commands that ask once and print the answer.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/threads/clock.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

// The coordinator's answer to a call of JobClient.
template <typename Call>
auto Ask(const CommandContext& context, Call call) -> decltype(call(std::declval<JobClient&>())) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return client.status();
  return call(**client);
}

// What the coordinator has in memory it also tells where its store keeps it waiting.
absl::StatusOr<v1::Job> Described(JobClient& client, const std::string& id) {
  absl::StatusOr<v1::Job> with_usage = client.GetWithUsage(id);
  if (!absl::IsDeadlineExceeded(with_usage.status())) return with_usage;
  absl::StatusOr<v1::Job> job = client.Get(id);
  if (!job.ok()) return with_usage;
  if (IsTerminal(job->state())) job->clear_last_checkpoint_step();  // somebody may have removed it
  job->mutable_usage()->set_checkpoints_error(
      absl::StrCat("no answer in time (", with_usage.status().message(), ")"));
  return job;
}

}  // namespace

int RunList(CommandContext& context) {
  const auto jobs = Ask(context, [](JobClient& client) { return client.List(); });
  if (!jobs.ok()) return context.console->Fail(jobs.status());
  if (context.output == OutputFormat::kTable) {
    context.console->Print(JobTable(*jobs, *context.console));
  } else if (context.output == OutputFormat::kJson) {
    context.console->Print(ToJson(*jobs, context.output));
  } else {
    for (const v1::Job& job : jobs->jobs()) context.console->Print(ToJson(job, context.output));
  }
  return kExitSuccess;
}

int RunDescribe(const std::string& id, CommandContext& context) {
  const auto job = Ask(context, [&id](JobClient& client) { return Described(client, id); });
  if (!job.ok()) return context.console->Fail(job.status());
  context.console->Print(context.output == OutputFormat::kTable
                             ? JobDescription(*job, *context.console)
                             : ToJson(*job, context.output));
  return kExitSuccess;
}

int RunCancel(const std::string& id, CommandContext& context) {
  const auto job = Ask(context, [&id](JobClient& client) { return client.Cancel(id); });
  if (!job.ok()) return context.console->Fail(job.status());
  if (context.output == OutputFormat::kTable) {
    context.console->Note(absl::StrCat("job ", id, " is ", StateName(job->state())));
  } else {
    context.console->Print(ToJson(*job, context.output));
  }
  return kExitSuccess;
}

int RunStages(CommandContext& context) {
  const auto stages = Ask(context, [](JobClient& client) { return client.ListStages(); });
  if (!stages.ok()) return context.console->Fail(stages.status());
  if (context.output == OutputFormat::kTable) {
    context.console->Print(
        StageTable(*stages, SystemClock::Get()->UnixSeconds(), *context.console));
  } else if (context.output == OutputFormat::kJson) {
    context.console->Print(ToJson(*stages, context.output));
  } else {
    for (const v1::StageInfo& info : stages->stages()) {
      context.console->Print(ToJson(info, context.output));
    }
  }
  return kExitSuccess;
}

int RunCheckpoints(const CheckpointsOptions& options, CommandContext& context) {
  const auto checkpoints = Ask(context, [&options](JobClient& client) {
    return client.ListCheckpoints(options.job, options.verify);
  });
  if (!checkpoints.ok()) return context.console->Fail(checkpoints.status());
  context.console->Print(context.output == OutputFormat::kTable
                             ? CheckpointTable(*checkpoints, *context.console)
                             : ToJson(*checkpoints, context.output));
  const auto& list = checkpoints->checkpoints();
  const auto broken = std::count_if(list.begin(), list.end(), [](const v1::CheckpointInfo& info) {
    return !info.error().empty();
  });
  if (broken == 0) return kExitSuccess;
  return context.console->Fail(absl::DataLossError(absl::StrCat(
      "job ", options.job, ": ", broken, " of ", list.size(), " checkpoints cannot be used")));
}

int RunHealth(const std::string& server, CommandContext& context) {
  ClientOptions options = context.client;
  if (!server.empty()) options.address = server;
  const absl::Status health = CheckHealth(options);
  if (!health.ok()) return context.console->Fail(health);
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(absl::StrCat(options.address, ": serving"));
  } else {
    context.console->PrintLine(
        absl::StrCat("{\"address\":", JsonText(options.address), ",\"status\":\"SERVING\"}"));
  }
  return kExitSuccess;
}

int RunVersion(CommandContext& context) {
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(absl::StrCat("stagecoach ", STAGECOACH_VERSION));
  } else {
    context.console->PrintLine(absl::StrCat("{\"version\":", JsonText(STAGECOACH_VERSION), "}"));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
