#include <chrono>

#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/local_run.h"
#include "services/cli/commands/run_folder.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {

int RunUi(const std::string& state_dir, CommandContext& context) {
  Console& console = *context.console;
  const absl::StatusOr<std::string> folder = FindRunFolder(state_dir);
  if (!folder.ok()) return console.Fail(folder.status());
  const absl::StatusOr<std::unique_ptr<LocalRun>> run = LocalRun::Start("ui", *folder, {}, context);
  if (!run.ok()) return console.Fail(run.status());
  console.Note(
      absl::StrCat("logs     ", *folder, "/logs  (of what ran here; the page shows this one's)"));
  (*run)->NoteHeldJobs(/*except=*/"");
  console.PrintLine(absl::StrCat("http://", (*run)->cluster().http_address(), "/"));
  console.Note("nothing runs here; Ctrl-C ends the page");
  while (!context.stop->WaitFor(std::chrono::hours(1))) {
  }
  (*run)->Stop();
  // Ctrl-C is how it ends; anything else is a reason.
  const absl::Status reason = context.stop->reason();
  return absl::IsCancelled(reason) ? static_cast<int>(kExitSuccess) : console.Fail(reason);
}

}  // namespace stagecoach
