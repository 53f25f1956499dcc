#include <chrono>

#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/local/local_run.h"
#include "services/cli/commands/local/run_folder.h"
#include "services/cli/local/scratch_folder.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

// Each is copied; of more the newest are shown.
constexpr size_t kMostShown = 200;

int ShowUntilStopped(LocalRun& run, CommandContext& context) {
  Console& console = *context.console;
  console.PrintLine(absl::StrCat("http://", run.cluster().http_address(), "/"));
  console.Note("nothing runs here; Ctrl-C ends the page");
  while (!context.stop->WaitFor(std::chrono::hours(1))) {
  }
  run.Stop();
  // Ctrl-C is how it ends; anything else is a reason.
  const absl::Status reason = context.stop->reason();
  return absl::IsCancelled(reason) ? static_cast<int>(kExitSuccess) : console.Fail(reason);
}

// Runs that are over, the newest; the others are named.
std::vector<std::string> RunsToShow(const std::string& folder, Console& console) {
  std::vector<std::string> runs;
  for (const std::string& run : RunsBelow(folder)) {
    if (const std::optional<std::string> who = HolderOf(run)) {
      console.Note(absl::StrCat("not shown: ", run, ", at work for ", *who));
    } else {
      runs.push_back(run);
    }
  }
  if (runs.size() > kMostShown) {
    console.Note(absl::StrCat("not shown: the ", runs.size() - kMostShown, " oldest of ",
                              runs.size(), " runs"));
    runs.erase(runs.begin(), runs.end() - kMostShown);
  }
  return runs;
}

int ShowRuns(const std::vector<std::string>& runs, CommandContext& context) {
  Console& console = *context.console;
  // For copies of journals.
  const absl::StatusOr<std::unique_ptr<ScratchFolder>> folder = ScratchFolder::Make("ui");
  if (!folder.ok()) return console.Fail(folder.status());
  const absl::StatusOr<std::unique_ptr<LocalRun>> run = LocalRun::Start(
      {.command = "ui", .state_folder = (*folder)->path(), .shown_runs = runs}, {}, context);
  if (!run.ok()) return console.Fail(run.status());
  console.Note(absl::StrCat("runs     ", runs.size(), runs.size() == 1 ? " run" : " runs",
                            ", as copies: nothing here changes them"));
  return ShowUntilStopped(**run, context);
}

}  // namespace

int RunUi(const std::string& state_dir, CommandContext& context) {
  Console& console = *context.console;
  const absl::StatusOr<std::string> folder = FindRunFolder(state_dir);
  if (absl::IsNotFound(folder.status())) {
    const std::vector<std::string> runs = RunsToShow(state_dir, console);
    if (!runs.empty()) return ShowRuns(runs, context);
  }
  if (!folder.ok()) return console.Fail(folder.status());
  const absl::StatusOr<std::unique_ptr<LocalRun>> run =
      LocalRun::Start({.command = "ui", .state_folder = *folder}, {}, context);
  if (!run.ok()) return console.Fail(run.status());
  console.Note(
      absl::StrCat("logs     ", *folder, "/logs  (of what ran here; the page shows this one's)"));
  (*run)->NoteHeldJobs(/*except=*/"");
  return ShowUntilStopped(**run, context);
}

}  // namespace stagecoach
