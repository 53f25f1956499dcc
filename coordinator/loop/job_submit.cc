// How a job is accepted: checked and planned on the checks' thread, a look into the checkpoint
// store on an effects thread, then the journal, and only then the answer.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/caller_error.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/job_name.h"
#include "coordinator/job/resume_check.h"
#include "coordinator/loop/job_loop.h"
#include "coordinator/loop/performer.h"

namespace stagecoach {
namespace {

absl::Status NobodyWaits() {
  return absl::CancelledError("the job was not accepted: the call was cancelled before");
}

absl::Status CheckId(const std::string& id) {
  if (IsJobName(id)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("id=\"", id.substr(0, 2 * kMaxJobNameLength), "\": want ", kJobNameRule));
}

// Where the job begins; pinned for `holder`, who releases it.
absl::StatusOr<Manifest> LookForResume(CheckpointStore& store, const ResumeSpec& resume,
                                       const std::string& holder, CheckpointPins* pins) {
  if (resume.job.empty()) return absl::NotFoundError("");
  absl::Status none = absl::NotFoundError(
      resume.step >= 0 ? absl::StrCat("resume.step: ", resume.step, "; job ", resume.job,
                                      " has no checkpoint of this step; `stagecoach checkpoints "
                                      "list ",
                                      resume.job, "` shows those that there are")
                       : absl::StrCat("resume.job: ", resume.job, "; it has no checkpoint"));
  for (const CheckpointRef& ref : store.List(resume.job)) {
    if (resume.step >= 0 && ref.step != static_cast<uint64_t>(resume.step)) continue;
    pins->Pin(holder, resume.job, {ref.step});  // or it is gone when the job begins
    absl::StatusOr<Manifest> manifest = store.ReadManifest(ref);
    // Without a step the newest one that holds is meant. What is passed over here is set aside,
    // with a record, by the search that the job begins with.
    const bool broken = absl::IsDataLoss(manifest.status()) || absl::IsNotFound(manifest.status());
    if (!broken) return manifest;
    // A code that clients get the reason of.
    if (resume.step >= 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("resume_step=", resume.step, ": this checkpoint of job ", resume.job,
                       " cannot be read: ", manifest.status().message(),
                       "; name another step, or none for the newest one that holds"));
    }
    if (!absl::IsNotFound(none)) continue;
    none = absl::FailedPreconditionError(absl::StrCat(
        "resume_job=", resume.job,
        ": none of its checkpoints can be read; the newest: ", manifest.status().message()));
  }
  return none;
}

}  // namespace

struct JobLoop::SubmitCheck {
  bool has_checkpoints = false, has_records = false;  // under its id
  absl::StatusOr<Manifest> resume = absl::NotFoundError("");
};

JobLoop::JobText JobLoop::TextOf(const std::string& spec_text) {
  return {Sha256Hex(spec_text), static_cast<int64_t>(spec_text.size())};
}

std::string JobLoop::NewId(const std::string& name) const {
  for (uint64_t salt = 0;; ++salt) {
    const std::string hash = Sha256Hex(absl::StrFormat(
        "%s %d %d %d %d", name, term_, next_sequence_, parts_.outside.clock->UnixNanos(), salt));
    const std::string suffix = absl::StrCat("-", hash.substr(0, 8));
    std::string id = absl::StrCat(name.substr(0, kMaxJobNameLength - suffix.size()), suffix);
    if (!Known(id) && !removals_.contains(id)) return id;
  }
}

absl::StatusOr<JobView> JobLoop::Existing(const std::string& id, const std::string& spec_text,
                                          const JobCaller& caller) const {
  if (!CheckCaller(caller, id).ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat("id=", id, ": another user's job is called so; choose another id"));
  }
  const Job* const live = Find(id);
  const std::string& sha256 = live != nullptr ? live->text.sha256 : ended_.Find(id)->spec_sha256;
  if (sha256 == Sha256Hex(spec_text)) return Get(id);
  return absl::AlreadyExistsError(
      absl::StrCat("job ", id, " exists with another spec; choose another id"));
}

// Also of a job that was purged: its checkpoints may be there, and whose it was is not known any
// more.
absl::Status JobLoop::MayResumeFrom(const std::string& job, const JobCaller& caller) const {
  if (job.empty() || !caller.own_only) return absl::OkStatus();
  return Annotate(CheckCaller(caller, job), "resume.job");
}

// The spec and its text are shared by what waits in line, so that each is there once.
void JobLoop::Submit(const std::string& id_or_empty, const JobSpec& spec,
                     std::function<void(absl::StatusOr<JobView>)> done,
                     std::function<bool()> wanted, const JobCaller& caller) {
  if (draining_) return done(absl::UnavailableError("the coordinator is shutting down"));
  if (absl::Status status = MayChange(); !status.ok()) return done(status);
  if (absl::Status status = CheckKnown(caller); !status.ok()) return done(status);
  if (wanted && !wanted()) return done(NobodyWaits());
  absl::Status status = id_or_empty.empty() ? absl::OkStatus() : CheckId(id_or_empty);
  const auto text =
      std::make_shared<const std::string>(status.ok() ? parts_.outside.codec->Encode(spec) : "");
  const auto bytes = static_cast<int64_t>(text->size());
  if (status.ok() && Known(id_or_empty)) return done(Existing(id_or_empty, *text, caller));
  if (status.ok()) status = NotBeingRemoved("id", id_or_empty);
  if (status.ok()) status = NotBeingRemoved("resume.job", spec.resume.job);
  if (status.ok()) status = MayResumeFrom(spec.resume.job, caller);
  if (status.ok()) status = RoomForAJob(bytes, caller);
  if (status.ok()) status = RoomToPlan(caller);
  if (!status.ok()) return done(status);
  const std::string id = id_or_empty.empty() ? NewId(spec.name) : id_or_empty;
  const uint64_t ticket = ++last_ticket_;
  submitting_[ticket] = {std::move(done), caller.name, bytes};
  asked_spec_bytes_ += bytes;
  checks_.Add(caller.name, [this, id, spec = std::make_shared<const JobSpec>(spec), text, ticket,
                            wanted, caller, number = EffectsNumber(spec.resume.job)] {
    const absl::StatusOr<std::shared_ptr<const JobDefinition>> definition =
        wanted && !wanted() ? NobodyWaits() : CheckSpec(*spec);
    if (!definition.ok()) {
      parts_.post([this, ticket, why = definition.status()] { AnswerSubmit(ticket, why); });
      return;
    }
    parts_.effect(number, [this, id, text, ticket, caller, definition = *definition] {
      const std::string holder = absl::StrCat("submission ", ticket);  // no job is called so
      CheckpointStore& store = *parts_.outside.checkpoints;
      SubmitCheck check;
      check.has_checkpoints = !store.List(id).empty();
      check.has_records = parts_.outside.file_system->Exists(
          absl::StrCat(parts_.options.state_folder, "/jobs/", id));
      check.resume = LookForResume(store, definition->spec.resume, holder, pins_.get());
      parts_.post([this, id, text, ticket, caller, definition, check = std::move(check), holder] {
        // From here on it is counted as a job's, if it becomes one.
        asked_spec_bytes_ -= std::exchange(submitting_.at(ticket).spec_bytes, 0);
        AnswerSubmit(ticket, Accept(id, *definition, *text, check, caller));
        pins_->Release(holder);  // the job has its own, if it was accepted
        Settle();
      });
    });
  });
}

void JobLoop::AnswerSubmit(uint64_t ticket, absl::StatusOr<JobView> answer) {
  const auto submission = submitting_.extract(ticket);
  asked_spec_bytes_ -= submission.mapped().spec_bytes;
  if (!answer.ok() && HiddenPlaces::Concern(submission.mapped().owner)) {
    answer = PlacesToHide().Hide(answer.status());
  }
  submission.mapped().done(std::move(answer));
}

absl::StatusOr<JobView> JobLoop::Accept(const std::string& id, JobDefinition definition,
                                        const std::string& spec_text, const SubmitCheck& check,
                                        const JobCaller& caller) {
  if (Known(id)) return Existing(id, spec_text, caller);  // another call with this id was faster
  RETURN_IF_ERROR(NotBeingRemoved("id", id));
  RETURN_IF_ERROR(NotBeingRemoved("resume.job", definition.spec.resume.job));
  if (check.has_checkpoints || check.has_records) {
    return absl::AlreadyExistsError(absl::StrCat(
        "id=", id, ": a job that this coordinator does not know, or has forgotten, left ",
        check.has_checkpoints ? "checkpoints" : "records", " under it; choose another id",
        check.has_checkpoints && !caller.own_only
            ? absl::StrCat(", or resume from them with resume_job=", id)
            : ""));
  }
  const JobText text = TextOf(spec_text);
  RETURN_IF_ERROR(RoomForAJob(text.bytes, caller));  // others may have been faster
  const JournalJob entry{id, next_sequence_, Now().unix_seconds, spec_text, "", caller.name};
  definition.id = id;
  definition.sequence = entry.sequence;
  definition.submitted_unix_seconds = entry.submitted_unix_seconds;
  definition.owner = entry.owner;
  const std::string resumed = definition.spec.resume.job;
  if (!resumed.empty()) {
    RETURN_IF_ERROR(check.resume.status());
    RETURN_IF_ERROR(CheckResume(definition, *check.resume, false));
  }
  RETURN_IF_ERROR(Annotate(OwnsFolder(), "the job was not accepted"));
  RETURN_IF_ERROR(Annotate(parts_.journal->AddJob(entry), "the job was not accepted"));
  ++next_sequence_;
  Job job;
  job.text = text;
  live_spec_bytes_ += text.bytes;
  job.state = NewJobState(std::make_shared<const JobDefinition>(std::move(definition)), term_,
                          LimitsOf(parts_.options));
  if (const auto former = former_generations_.extract(id)) {
    job.state.generation = former.mapped() + 2;  // no answer from either generation before counts
  }
  if (!resumed.empty()) pins_->Pin(id, resumed, {check.resume->state.step});  // until it looks
  jobs_.emplace(id, std::move(job));
  Deliver({id, Now(), JobOpened{term_, false}});
  ASSIGN_OR_RETURN(JobView view, Get(id));
  if (parts_.outside.on_accepted) parts_.outside.on_accepted(view);
  return view;
}

}  // namespace stagecoach
