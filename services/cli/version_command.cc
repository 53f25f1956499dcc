#include "absl/strings/str_cat.h"
#include "services/cli/commands.h"
#include "services/cli/exit_code.h"
#include "services/cli/text.h"

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
