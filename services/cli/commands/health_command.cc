#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/text.h"

namespace stagecoach {

int RunHealth(CommandContext& context) {
  const absl::Status health = CheckHealth(context.client);
  if (!health.ok()) return context.console->Fail(health);
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(absl::StrCat(context.client.address, ": serving"));
  } else {
    context.console->PrintLine(absl::StrCat("{\"address\":", JsonText(context.client.address),
                                            ",\"status\":\"SERVING\"}"));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
