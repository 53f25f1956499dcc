#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/data_upload.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/commands/same_data.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/spec/data_here.h"

namespace stagecoach {
namespace {

constexpr char kWhosePaths[] =
    "; a path of a job file is this machine's, and submit uploads it; for files that the stages "
    "have "
    "write on_stages: FOLDER";

int DryRun(JobClient& client, const SpecFile& spec_file, CommandContext& context) {
  const absl::StatusOr<v1::PlanJobResponse> plan = client.Plan(spec_file.spec);
  if (!plan.ok()) return context.console->Fail(plan.status());
  context.console->Print(context.output == OutputFormat::kTable
                             ? PlanText(*plan, /*with_schedule=*/false)
                             : ToJson(*plan, context.output));
  return kExitSuccess;
}

// Of the data, before it travels. An id that was made here is new.
CheckParts CheckOfId(JobClient& client, const std::string& id, const v1::JobSpec& spec) {
  if (id.empty()) return {};
  return [&client, id, spec](const LocalParts& parts) {
    const absl::StatusOr<v1::Job> there = client.Get(id);
    return there.ok() ? CheckSameData(client.data(), *there, spec, parts) : absl::OkStatus();
  };
}

}  // namespace

int RunSubmit(const SubmitOptions& options, CommandContext& context) {
  Console& console = *context.console;
  absl::StatusOr<ValidSpecFile> spec_file = ReadValidSpec(options.file);
  if (!spec_file.ok()) return console.Fail(spec_file.status());
  // A plan needs no data.
  const absl::Status data = CheckDataHere(*spec_file);
  if (!data.ok() && options.dry_run) {
    console.Note(absl::StrCat("stagecoach: note: ", data.message()));
  } else if (!data.ok()) {
    return console.Fail(absl::Status(data.code(), absl::StrCat(data.message(), kWhosePaths)));
  }
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return console.Fail(client.status());
  if (options.dry_run) return DryRun(**client, *spec_file, context);

  const absl::Status uploaded = UploadDataOf(
      **client, &spec_file->spec, context,
      {.check = CheckOfId(**client, options.id, spec_file->spec), .again = options.data_again});
  if (absl::IsInvalidArgument(uploaded)) return console.Fail(LocateError(*spec_file, uploaded));
  if (!uploaded.ok()) return console.Fail(uploaded);
  const std::string id = options.id.empty() ? MakeJobId(spec_file->spec.name()) : options.id;
  const absl::StatusOr<v1::Job> job =
      SubmitPatiently(**client, id, spec_file->spec, kSubmitPatienceSeconds, context.stop);
  if (!job.ok()) return console.Fail(job.status());
  if (options.detach) {
    if (context.output == OutputFormat::kTable) {
      console.PrintLine(job->id());
    } else {
      console.Print(ToJson(*job, context.output));
    }
    return kExitSuccess;
  }
  if (IsTerminal(job->state())) {
    console.Note(absl::StrCat("its history:  stagecoach watch ", id));
    return ReportEnded(**client, *job, "choose another --id",
                       absl::StrCat("stagecoach resume ", id), context);
  }
  console.Note(absl::StrCat("job ", job->id()));
  const int code = FollowAndReport(**client, *job, /*quiet=*/false, context);
  if (code == kExitInterrupted) {
    console.Note(absl::StrCat("the job goes on; to follow it again:  stagecoach watch ", job->id(),
                              "\nto end it:  stagecoach cancel ", job->id()));
  }
  return code;
}

}  // namespace stagecoach
