#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"

namespace stagecoach {

int RunDescribe(const std::string& id, CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::Job> job = (*client)->Get(id);
  if (!job.ok()) return context.console->Fail(job.status());
  context.console->Print(context.output == OutputFormat::kTable
                             ? JobDescription(*job, *context.console)
                             : ToJson(*job, context.output));
  return kExitSuccess;
}

}  // namespace stagecoach
