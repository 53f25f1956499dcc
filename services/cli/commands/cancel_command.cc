#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/ndjson.h"

namespace stagecoach {

int RunCancel(const std::string& id, CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::Job> job = (*client)->Cancel(id);
  if (!job.ok()) return context.console->Fail(job.status());
  if (context.output == OutputFormat::kTable) {
    context.console->Note(absl::StrCat("job ", id, " is ", StateName(job->state())));
  } else {
    context.console->Print(ToJson(*job, context.output));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
