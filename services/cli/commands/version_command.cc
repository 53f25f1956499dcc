#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/text.h"

namespace stagecoach {

int RunVersion(CommandContext& context) {
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(absl::StrCat("stagecoach ", STAGECOACH_VERSION));
  } else {
    context.console->PrintLine(absl::StrCat("{\"version\":", JsonText(STAGECOACH_VERSION), "}"));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
