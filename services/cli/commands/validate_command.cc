#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/spec/data_here.h"

namespace stagecoach {

int RunValidate(const ValidateOptions& options, CommandContext& context) {
  const absl::StatusOr<SpecFile> spec_file = ReadValidSpec(options.file);
  if (!spec_file.ok()) return context.console->Fail(spec_file.status());
  const absl::Status data = options.data_elsewhere ? absl::OkStatus() : CheckDataHere(*spec_file);
  if (!data.ok()) {
    return context.console->Fail(absl::Status(
        data.code(), absl::StrCat(data.message(),
                                  "; if the stages have it under this path on their machines, say "
                                  "--data-elsewhere")));
  }
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(absl::StrCat(spec_file->file, ": ok"));
  } else {
    context.console->Print(ToJson(spec_file->spec, context.output));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
