#include <filesystem>

#include "absl/strings/str_cat.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/commands/local/go_on.h"
#include "services/cli/commands/local/local_run.h"
#include "services/cli/commands/local/run_folder.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

int ResumeOnCluster(const ResumeOptions& options, CommandContext& context) {
  Console& console = *context.console;
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return console.Fail(client.status());
  const absl::StatusOr<v1::Job> job = (*client)->Get(options.job);
  if (!job.ok()) return console.Fail(job.status());
  const absl::StatusOr<StartedJob> started =
      GoOn(**client, *job, options.stages, options.steps, options.id, context);
  if (!started.ok()) return console.Fail(started.status());
  const std::string& id = started->job.id();
  console.Note(absl::StrCat("job ", id));
  const int code =
      FollowAndReport(**client, started->job, /*quiet=*/false, context, started->after);
  if (code == kExitInterrupted) {
    console.Note(absl::StrCat("the job goes on; to follow it again:  stagecoach watch ", id,
                              "\nto end it:  stagecoach cancel ", id));
  }
  return code;
}

int ResumeLocally(const ResumeOptions& options, CommandContext& context) {
  Console& console = *context.console;
  const absl::StatusOr<std::string> folder = FindRunFolder(options.state_dir);
  if (!folder.ok()) return console.Fail(folder.status());
  const absl::StatusOr<std::unique_ptr<LocalRun>> run =
      LocalRun::Start({.command = "resume", .state_folder = *folder}, options.cluster, context);
  if (!run.ok()) return console.Fail(run.status());
  const absl::StatusOr<v1::Job> job = (*run)->client().Get(options.job);
  if (!job.ok()) return console.Fail(job.status());
  // Of a job that leaves it to the cluster, there is none yet that could say.
  const bool says = options.stages > 0 || job->spec().pipeline().stages() > 0;
  const int64_t stages = says ? options.stages : kAutoStages;
  const absl::StatusOr<StartedJob> started =
      GoOn((*run)->client(), *job, stages, options.steps, options.id, context);
  if (!started.ok()) return console.Fail(started.status());
  return (*run)->Follow(*started, /*trace_file=*/"");
}

}  // namespace

int RunResume(const ResumeOptions& options, CommandContext& context) {
  return options.state_dir.empty() ? ResumeOnCluster(options, context)
                                   : ResumeLocally(options, context);
}

}  // namespace stagecoach
