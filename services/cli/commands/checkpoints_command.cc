#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"

namespace stagecoach {

int RunCheckpoints(const CheckpointsOptions& options, CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::ListCheckpointsResponse> checkpoints =
      (*client)->ListCheckpoints(options.job, options.verify);
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

}  // namespace stagecoach
