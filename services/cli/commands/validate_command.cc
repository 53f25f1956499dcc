#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_sets_of.h"
#include "plan/plan.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/spec/client_files.h"
#include "services/cli/spec/data_here.h"
#include "services/cli/spec/data_survey.h"

namespace stagecoach {
namespace {

constexpr char kIfElsewhere[] =
    "; for files that the stages have write on_stages: FOLDER; to check without the data say "
    "--data-elsewhere";
constexpr char kNotLookedAt[] = "the data is not on this machine, and was not looked at";

}  // namespace

int RunValidate(const ValidateOptions& options, CommandContext& context) {
  const absl::StatusOr<ValidSpecFile> spec_file = ReadValidSpec(options.file);
  if (!spec_file.ok()) return context.console->Fail(spec_file.status());
  if (!spec_file->job.pipeline.own_schedule.empty()) {
    // What a complete text needs hangs on the cut.
    const int stages = static_cast<int>(spec_file->job.pipeline.stages);
    const absl::Status planned =
        MakePlan(spec_file->job, spec_file->network, stages, {}, {}).status();
    if (!planned.ok()) return context.console->Fail(LocateError(*spec_file, planned));
  }
  for (const ClusterPath& path : PathsInBuckets(spec_file->job)) {
    const absl::Status sound = Annotate(ParseBucketPath(path.path).status(), path.field);
    if (!sound.ok()) return context.console->Fail(sound);
  }
  absl::StatusOr<DataSurvey> survey = DataSurvey();
  if (!options.data_elsewhere) {
    const absl::Status here = CheckDataHere(*spec_file);
    if (!here.ok()) {
      return context.console->Fail(
          absl::Status(here.code(), absl::StrCat(here.message(), kIfElsewhere)));
    }
    // Of a job that writes texts the stages read no data.
    const bool all_here = AllDataIsClients(spec_file->spec, spec_file->job.data);
    if (all_here && !spec_file->job.write.has_value()) survey = SurveyData(*spec_file);
    if (!survey.ok()) return context.console->Fail(survey.status());
    if (!all_here) survey->notes.push_back(kNotLookedAt);
  }
  for (const std::string& note : survey->notes) context.console->Note("note: " + note);
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(
        absl::StrCat(spec_file->file, ": ok", survey->found.empty() ? "" : ": ", survey->found));
  } else {
    context.console->Print(ToJson(spec_file->spec, context.output));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
