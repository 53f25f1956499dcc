// How a job is accepted: checked and planned on the checks' thread, a look into the checkpoint
// store on an effects thread, then the journal, and only then the answer.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "base/job_name.h"
#include "base/status.h"
#include "coordinator/job/resume_check.h"
#include "coordinator/loop/job_loop.h"
#include "coordinator/loop/performer.h"

namespace stagecoach {
namespace {

absl::Status CheckId(const std::string& id) {
  if (IsJobName(id)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("id=\"", id.substr(0, 2 * kMaxJobNameLength), "\": want ", kJobNameRule));
}

}  // namespace

absl::Status JobLoop::RoomForAJob() const {
  int64_t live = 0;
  for (const auto& [id, job] : jobs_) live += IsTerminal(job.state.phase) ? 0 : 1;
  if (live < parts_.options.max_jobs) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(live, " jobs wait or run already, the most there may be; try again later"));
}

std::string JobLoop::NewId(const std::string& name) const {
  for (uint64_t salt = 0;; ++salt) {
    const std::string hash = Sha256Hex(absl::StrFormat(
        "%s %d %d %d %d", name, term_, next_sequence_, parts_.outside.clock->UnixNanos(), salt));
    const std::string suffix = absl::StrCat("-", hash.substr(0, 8));
    std::string id = absl::StrCat(name.substr(0, kMaxJobNameLength - suffix.size()), suffix);
    if (!Known(id)) return id;
  }
}

absl::StatusOr<JobView> JobLoop::Existing(const std::string& id,
                                          const std::string& spec_text) const {
  const Job* const live = Find(id);
  const bool same = live != nullptr ? live->spec_text == spec_text
                                    : ended_.at(id).spec_sha256 == Sha256Hex(spec_text);
  if (same) return Get(id);
  return absl::AlreadyExistsError(
      absl::StrCat("job ", id, " exists with another spec; choose another id"));
}

void JobLoop::Submit(const std::string& id_or_empty, const JobSpec& spec,
                     std::function<void(absl::StatusOr<JobView>)> done) {
  if (draining_) return done(absl::UnavailableError("the coordinator is shutting down"));
  absl::Status status = id_or_empty.empty() ? absl::OkStatus() : CheckId(id_or_empty);
  const std::string spec_text = status.ok() ? parts_.outside.codec->Encode(spec) : "";
  if (status.ok() && Known(id_or_empty)) return done(Existing(id_or_empty, spec_text));
  if (status.ok()) status = RoomForAJob();
  if (status.ok()) status = RoomToPlan();
  if (!status.ok()) return done(status);
  const std::string id = id_or_empty.empty() ? NewId(spec.name) : id_or_empty;
  const uint64_t ticket = ++last_ticket_;
  submitting_[ticket] = std::move(done);
  parts_.check([this, id, spec, spec_text, ticket, number = EffectsNumber(spec.resume_job)] {
    const absl::StatusOr<std::shared_ptr<const JobDefinition>> definition = CheckSpec(spec);
    if (!definition.ok()) {
      parts_.post([this, ticket, why = definition.status()] { AnswerSubmit(ticket, why); });
      return;
    }
    parts_.effect(number, [this, id, spec_text, ticket, definition = *definition] {
      const std::string holder = absl::StrCat("submission ", ticket);  // no job is called so
      SubmitCheck check = LookIntoStore(id, definition->spec, holder);
      parts_.post([this, id, spec_text, ticket, definition, check = std::move(check), holder] {
        AnswerSubmit(ticket, Accept(id, *definition, spec_text, check));
        pins_->Release(holder);  // the job has its own, if it was accepted
        Settle();
      });
    });
  });
}

void JobLoop::AnswerSubmit(uint64_t ticket, absl::StatusOr<JobView> answer) {
  submitting_.extract(ticket).mapped()(std::move(answer));
}

JobLoop::SubmitCheck JobLoop::LookIntoStore(const std::string& id, const JobSpec& spec,
                                            const std::string& holder) const {
  CheckpointStore& store = *parts_.outside.checkpoints;
  SubmitCheck check;
  check.folder_taken = !store.List(id).empty();
  if (spec.resume_job.empty()) return check;
  for (const CheckpointRef& ref : store.List(spec.resume_job)) {
    if (spec.resume_step >= 0 && ref.step != static_cast<uint64_t>(spec.resume_step)) continue;
    pins_->Pin(holder, spec.resume_job, ref.step);  // or it is gone when the job begins
    check.resume = store.ReadManifest(ref);
    return check;
  }
  check.resume = absl::NotFoundError(
      spec.resume_step >= 0 ? absl::StrCat("resume_step=", spec.resume_step, ": job ",
                                           spec.resume_job, " has no checkpoint of this step")
                            : absl::StrCat("resume_job=", spec.resume_job, " has no checkpoint"));
  return check;
}

absl::StatusOr<JobView> JobLoop::Accept(const std::string& id, JobDefinition definition,
                                        const std::string& spec_text, const SubmitCheck& check) {
  if (Known(id)) return Existing(id, spec_text);  // another call with this id was faster
  if (check.folder_taken) {
    return absl::AlreadyExistsError(
        absl::StrCat("id=", id, ": ", parts_.outside.checkpoints->root(), "/", id,
                     " holds checkpoints of a job this coordinator does not know; choose another "
                     "id, or resume from them with resume_job=",
                     id));
  }
  RETURN_IF_ERROR(RoomForAJob());  // others may have been faster
  const JournalJob entry{id, next_sequence_, Now().unix_seconds, spec_text, ""};
  definition.id = id;
  definition.sequence = entry.sequence;
  definition.submitted_unix_seconds = entry.submitted_unix_seconds;
  if (!definition.spec.resume_job.empty()) {
    RETURN_IF_ERROR(check.resume.status());
    RETURN_IF_ERROR(CheckResume(definition, *check.resume, false));
  }
  RETURN_IF_ERROR(Annotate(OwnsFolder(), "the job was not accepted"));
  RETURN_IF_ERROR(Annotate(parts_.journal->AddJob(entry), "the job was not accepted"));
  ++next_sequence_;
  Job job;
  job.spec_text = spec_text;
  job.state = NewJobState(std::make_shared<const JobDefinition>(std::move(definition)), term_,
                          LimitsOf(parts_.options));
  PinResumed(job.state);
  jobs_.emplace(id, std::move(job));
  Deliver({id, Now(), JobOpened{term_, false}});
  ASSIGN_OR_RETURN(JobView view, Get(id));
  if (parts_.outside.on_accepted) parts_.outside.on_accepted(view);
  return view;
}

}  // namespace stagecoach
