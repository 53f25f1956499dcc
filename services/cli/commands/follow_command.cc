#include "services/cli/commands/follow_command.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/job_name.h"
#include "services/cli/commands/follow_view.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/text.h"
#include "services/cli/spec/spec_difference.h"
#include "services/common/process/process.h"

namespace stagecoach {
namespace {

class QuietSink final : public RecordSink {
 public:
  void OnRecord(const v1::WatchJobResponse&) override {}
  void OnOutage(const absl::Status&) override {}
};

std::optional<v1::Job> GetOrNothing(JobClient& client, const std::string& id) {
  absl::StatusOr<v1::Job> job = client.Get(id);
  if (!job.ok()) return std::nullopt;
  return std::move(*job);
}

// The data of a job that writes texts are the texts, and it makes no weights.
void ReportEnd(JobClient& client, const std::string& id, bool writes,
               const v1::WatchJobResponse& last, CommandContext& context) {
  const v1::FinishedRecord& finished = last.finished();
  Console& console = *context.console;
  const std::optional<v1::Job> job = GetOrNothing(client, id);
  if (context.output == OutputFormat::kJson && job.has_value()) {
    console.Print(ToJson(*job, OutputFormat::kJson));
  } else if (context.output == OutputFormat::kTable) {
    const std::string state = StateName(finished.state());
    std::string line = absl::StrCat("job ", id, " ", writes ? state : console.ColoredState(state),
                                    " at step ", last.step());
    if (writes) {
      console.Note(line);
    } else {
      if (last.step() > 0) absl::StrAppendFormat(&line, ", loss %.4f", finished.loss());
      console.PrintLine(line);
    }
    if (job.has_value() && !job->weights_folder().empty()) {
      console.PrintLine(absl::StrCat("weights ", job->weights_folder()));
    }
    if (!finished.weights_digest().empty()) {
      console.PrintLine(absl::StrCat("digest  ", finished.weights_digest()));
    }
  }
  if (!finished.message().empty()) {
    const bool well = finished.state() == v1::JOB_STATE_SUCCEEDED;
    console.Note(absl::StrCat(well ? "" : "stagecoach: ", "job ", id, ": ", finished.message()));
  }
}

// A job that succeeded has more steps to ask for; without a checkpoint there is nothing to go on
// from.
std::string HowToGoOn(const v1::Job& job, const std::string& resume) {
  if (job.spec().has_write()) return "";
  if (job.state() == v1::JOB_STATE_SUCCEEDED) {
    return absl::StrCat("\nto train on:  ", resume, " --steps N");
  }
  if (!job.has_last_checkpoint_step()) return "";
  return absl::StrCat("\nto go on from its checkpoint of step ", job.last_checkpoint_step(), ":  ",
                      resume);
}

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

int FollowAndReport(JobClient& client, const v1::Job& job, bool quiet, CommandContext& context,
                    uint64_t after) {
  FollowOptions options;
  const bool writes = job.spec().has_write();
  // A line's text is the pieces of all its records.
  options.after = writes ? 0 : after;
  const std::string& id = job.id();
  absl::StatusOr<v1::WatchJobResponse> last = absl::InternalError("not followed yet");
  absl::Status whole;  // what was shown
  if (quiet) {
    QuietSink sink;
    last = FollowJob(client, id, options, sink, context.stop);
  } else {
    FollowView view(job, context.output, context.console, SystemClock::Get(),
                    [&client, &id] { return GetOrNothing(client, id); });
    last = FollowJob(client, id, options, view, context.stop);
    whole = view.CheckWhole(id);
  }
  if (!last.ok()) return context.console->Fail(last.status());
  ReportEnd(client, id, writes, *last, context);
  const bool succeeded = last->finished().state() == v1::JOB_STATE_SUCCEEDED;
  if (succeeded && !whole.ok()) return context.console->Fail(whole);
  return ExitCodeOf(last->finished().state());
}

int ReportEnded(JobClient& client, const v1::Job& job, const std::string& anew,
                const std::string& resume, CommandContext& context) {
  int code = ExitCodeOf(job.state());
  const bool writes = job.spec().has_write();
  if (writes) {  // its result is in its history
    code = FollowAndReport(client, job, /*quiet=*/false, context);
  } else {
    const v1::WatchJobResponse last = FinishedRecordOf(job);
    if (context.output == OutputFormat::kNdjson)
      context.console->PrintLine(ToNdjson(last, /*replayed=*/false));
    ReportEnd(client, job.id(), /*writes=*/false, last, context);
  }
  context.console->Note(absl::StrCat(
      "job ", job.id(), " ended at ", FormatUnixTime(job.finished_unix_seconds()),
      " with this spec already: ", writes ? "its texts are of that run" : "nothing was run",
      "\nto run it anew: ", anew, HowToGoOn(job, resume)));
  return code;
}

absl::Status ExistsWithAnotherSpec(const v1::Job& job, const v1::JobSpec& spec,
                                   const std::string& remedy) {
  return absl::AlreadyExistsError(absl::StrCat("job ", job.id(), " (", StateName(job.state()),
                                               " at step ", job.step(), " of ", job.total_steps(),
                                               ") exists with another spec. It differs in\n",
                                               SpecDifference(job.spec(), spec), remedy));
}

std::string RemedyOfAnotherSpec(const std::string& id) {
  return absl::StrCat(
      "to run this spec: choose another --id; to go on with the job there:  stagecoach resume ", id,
      " [--stages K] [--steps N]");
}

absl::StatusOr<v1::Job> SubmitPatiently(JobClient& client, const std::string& id,
                                        const v1::JobSpec& spec, double patience_seconds,
                                        StopSignal* stop) {
  const Clock& clock = *SystemClock::Get();
  const double give_up_seconds = clock.MonotonicSeconds() + patience_seconds;
  while (true) {
    absl::StatusOr<v1::Job> job = client.Submit(id, spec);
    if (absl::IsAlreadyExists(job.status())) {
      const std::optional<v1::Job> other = GetOrNothing(client, id);
      // Without a difference its objects in buckets are others: the coordinator names them.
      if (!other.has_value() || SpecDifference(other->spec(), spec).empty()) return job.status();
      return ExistsWithAnotherSpec(*other, spec, RemedyOfAnotherSpec(id));
    }
    if (job.ok() || !absl::IsUnavailable(job.status())) return job;
    if (clock.MonotonicSeconds() >= give_up_seconds) return job;
    if (stop->WaitFor(std::chrono::milliseconds(200))) return stop->reason();
  }
}

std::string MakeJobId(const std::string& name) {
  const std::string suffix = absl::StrCat("-", NewIncarnation().substr(0, 8));
  return name.substr(0, kMaxJobNameLength - suffix.size()) + suffix;
}

absl::StatusOr<ValidSpecFile> ReadValidSpec(const std::string& file) {
  ASSIGN_OR_RETURN(SpecFile spec_file, ReadSpecFile(file));
  return ValidateSpecFile(std::move(spec_file));
}

int RunWatch(const std::string& job, CommandContext& context) {
  return Follow(job, /*quiet=*/false, context);
}

int RunWait(const std::string& job, CommandContext& context) {
  return Follow(job, /*quiet=*/true, context);
}

}  // namespace stagecoach
