// How a coordinator that starts takes the journal's jobs up again.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/job_name.h"
#include "base/utf8.h"
#include "coordinator/job/job_json.h"
#include "coordinator/job/resume_check.h"
#include "coordinator/journal/moved_run.h"
#include "coordinator/loop/job_loop.h"
#include "coordinator/loop/performer.h"

namespace stagecoach {
namespace {

// All but the network.
JobDefinition DefinitionOf(const JournalJob& entry, const JobSpec& spec) {
  JobDefinition definition;
  definition.id = entry.id;
  definition.sequence = entry.sequence;
  definition.spec = spec;
  definition.submitted_unix_seconds = entry.submitted_unix_seconds;
  definition.owner = entry.owner;
  return definition;
}

}  // namespace

absl::Status JobLoop::MoveJobs() {
  const std::string& now = parts_.options.state_folder;
  ASSIGN_OR_RETURN(const std::string before, parts_.journal->Place());
  if (before == now) return absl::OkStatus();
  const MovedRun moved(before, now, parts_.outside.file_system);
  std::map<std::string, JobSpec> specs;
  RETURN_IF_ERROR(parts_.journal->EachJob([&](const JournalJob& entry) {
    absl::StatusOr<JobSpec> spec = parts_.outside.codec->Decode(entry.spec);
    if (entry.intact && spec.ok() && moved.Move(&*spec)) specs[entry.id] = *std::move(spec);
  }));
  for (const auto& [id, spec] : specs) {
    RETURN_IF_ERROR(parts_.journal->SetSpec(id, parts_.outside.codec->Encode(spec)));
  }
  return parts_.journal->SetPlace(now);
}

absl::Status JobLoop::Open() {
  RETURN_IF_ERROR(MoveJobs());
  std::vector<std::pair<uint64_t, std::string>> ids;  // by sequence
  RETURN_IF_ERROR(parts_.journal->EachJob([&](const JournalJob& entry) {
    ids.emplace_back(entry.sequence, entry.id);
    next_sequence_ = std::max(next_sequence_, entry.sequence + 1);
    if (absl::Status status = AddFromJournal(entry); !status.ok()) SetAside(entry, status);
  }));
  RETURN_IF_ERROR(OpenRemovals());
  if (parts_.outside.on_unknown_jobs) {
    const std::vector<std::string> unknown = UnknownJobs();
    if (!unknown.empty()) parts_.outside.on_unknown_jobs(unknown);
  }
  // Before anything else of a job touches its folder. Those that go on come first.
  const auto sweep = [this](uint64_t sequence, const std::string& id) {
    parts_.effect(sequence, [store = parts_.outside.checkpoints, id, term = term_] {
      store->SweepTemporary(id, term);
    });
  };
  for (const auto& [sequence, id] : ids) {
    if (Find(id) == nullptr) continue;
    sweep(sequence, id);
    Deliver({id, Now(), JobOpened{term_, true, parts_.options.hold_jobs}});
  }
  for (const auto& [sequence, id] : ids) {
    if (Find(id) == nullptr) sweep(sequence, id);
  }
  for (const auto& [id, removal] : removals_) RemoveFiles(id);
  return absl::OkStatus();
}

std::vector<std::string> JobLoop::UnknownJobs() const {
  std::set<std::string> names;
  for (std::string& name : parts_.outside.checkpoints->Jobs()) names.insert(std::move(name));
  const auto records =
      parts_.outside.file_system->List(absl::StrCat(parts_.options.state_folder, "/jobs"));
  if (records.ok()) {
    for (const std::string& name : *records) {
      if (IsJobName(name)) names.insert(name);
    }
  }
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (Known(name) || removals_.contains(name)) continue;
    const absl::StatusOr<bool> forgot = parts_.journal->Forgot(name);
    if (!forgot.ok() || !*forgot) unknown.push_back(name);
  }
  return unknown;
}

// What cannot be read, perhaps because a newer version wrote it, must not keep the others down. The
// entry stays in the journal as it is, and so does its id: nothing of it is ever written again.
void JobLoop::SetAside(const JournalJob& entry, const absl::Status& why) {
  auto definition = std::make_shared<JobDefinition>();
  definition->id = definition->spec.name = ShownName(entry.id);
  definition->sequence = entry.sequence;
  definition->submitted_unix_seconds = entry.submitted_unix_seconds;
  definition->owner = entry.owner;
  JobState state = NewJobState(std::move(definition), term_, LimitsOf(parts_.options));
  state.phase = JobPhase::kFailed;
  state.message = absl::StrCat(
      ShownText(why.ToString()),
      "; this job's journal entry is kept as it is and set aside until a version that can read it "
      "is started; to go on from its checkpoints, submit its spec under another name with resume: "
      "{job: ",
      ShownName(entry.id), "}");
  JobView view = ViewOf(state);
  view.set_aside = true;
  ended_.Add(entry.id, Sha256Hex(entry.spec), std::move(view));
}

absl::Status JobLoop::AddFromJournal(const JournalJob& entry) {
  if (!IsJobName(entry.id)) {
    return absl::DataLossError(
        absl::StrCat("journal: the id ", ShownName(entry.id), " is not ", kJobNameRule));
  }
  if (!entry.intact) {
    return absl::DataLossError(
        "journal: this entry has another checksum than it was written with, so bits of the file "
        "have "
        "changed; restore the journal from a backup");
  }
  ASSIGN_OR_RETURN(const JobSpec spec, parts_.outside.codec->Decode(entry.spec));
  const JobLimits limits = LimitsOf(parts_.options);
  // Nobody wants the network of an ended job, which may be large.
  auto definition = std::make_shared<JobDefinition>(DefinitionOf(entry, spec));
  JobState state = NewJobState(definition, term_, limits);
  if (!entry.state.empty()) RETURN_IF_ERROR(DecodeJobState(entry.state, &state));
  if (!state.results.weights_folder.empty() && !parts_.options.only_shows) {
    state.results.weights_folder = ExportFolder(entry.id);  // it may have moved
  }
  if (IsTerminal(state.phase)) {
    ended_.Add(entry.id, Sha256Hex(entry.spec), ViewOf(state));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Network network, ExpandJob(spec));
  state.job = Define(entry, spec, std::move(network));
  ASSIGN_OR_RETURN(state.records, parts_.journal->LastNumber(entry.id));
  PinResumed(state);
  Job job;
  job.text = TextOf(entry.spec);
  live_spec_bytes_ += job.text.bytes;
  job.phase_on_disk = state.phase;
  job.step_on_disk = state.step;
  job.state = std::move(state);
  jobs_.emplace(entry.id, std::move(job));
  return absl::OkStatus();
}

std::shared_ptr<const JobDefinition> JobLoop::Define(const JournalJob& entry, const JobSpec& spec,
                                                     Network network) const {
  auto definition = std::make_shared<JobDefinition>(DefinitionOf(entry, spec));
  definition->secret = parts_.journal->secret();
  definition->model_sha256 = ModelSha256(network);
  definition->network = std::move(network);
  return definition;
}

}  // namespace stagecoach
