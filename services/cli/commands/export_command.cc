#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"

namespace stagecoach {

int RunExport(const ExportOptions& options, CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::ExportWeightsResponse> exported =
      (*client)->Export(options.job, options.step, options.average);
  if (!exported.ok()) return context.console->Fail(exported.status());
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(exported->folder());
    context.console->Note(absl::StrCat("digest ", exported->weights_digest()));
  } else {
    context.console->Print(ToJson(*exported, context.output));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
