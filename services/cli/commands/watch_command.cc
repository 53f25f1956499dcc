#include "absl/strings/str_cat.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

int Follow(const std::string& id, bool quiet, CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::Job> job = (*client)->Get(id);
  if (!job.ok()) return context.console->Fail(job.status());
  const int code = FollowAndReport(**client, *job, quiet, context);
  if (code == kExitInterrupted) {
    context.console->Note(absl::StrCat("the job goes on; to end it:  stagecoach cancel ", id));
  }
  return code;
}

}  // namespace

int RunWatch(const std::string& job, CommandContext& context) {
  return Follow(job, /*quiet=*/false, context);
}

int RunWait(const std::string& job, CommandContext& context) {
  return Follow(job, /*quiet=*/true, context);
}

}  // namespace stagecoach
