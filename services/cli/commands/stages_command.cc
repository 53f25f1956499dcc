#include "base/threads/clock.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"

namespace stagecoach {

int RunStages(CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::ListStagesResponse> stages = (*client)->ListStages();
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

}  // namespace stagecoach
