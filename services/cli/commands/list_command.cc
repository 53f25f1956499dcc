#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"

namespace stagecoach {

int RunList(CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::ListJobsResponse> jobs = (*client)->List();
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

}  // namespace stagecoach
