#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"

namespace stagecoach {

int RunValidate(const std::string& file, CommandContext& context) {
  const absl::StatusOr<SpecFile> spec_file = ReadValidSpec(file);
  if (!spec_file.ok()) return context.console->Fail(spec_file.status());
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(absl::StrCat(file, ": ok"));
  } else {
    context.console->Print(ToJson(spec_file->spec, context.output));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
