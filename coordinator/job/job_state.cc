#include "coordinator/job/job_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/utf8.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/job/step_decision.h"
#include "plan/job/epochs.h"

namespace stagecoach {

JobState NewJobState(std::shared_ptr<const JobDefinition> job, uint64_t term,
                     const JobLimits& limits) {
  JobState state;
  state.stages.wanted = static_cast<int>(job->spec.pipeline.stages);
  state.origin.resume_step = job->spec.resume.step;
  state.job = std::move(job);
  state.term = term;
  state.limits = limits;
  return state;
}

Fence FenceOf(const JobState& state) {
  return {state.job->id, state.term, state.generation, LoadedStep(state), state.attempt};
}

int64_t TotalSteps(const JobState& state) {
  if (Writes(state)) return WriteBatches(state.job->spec);
  return StepsOf(state.job->spec.training, state.found.data.train_samples);
}

double StepsPerEpochOf(const JobState& state) {
  return StepsPerEpoch(state.job->spec.training, state.found.data.train_samples);
}

uint64_t LastStep(const JobState& state) {
  if (state.reached.step > 0) return state.reached.step;
  const int64_t steps = TotalSteps(state);
  return steps > 0 ? static_cast<uint64_t>(steps) : std::numeric_limits<uint64_t>::max();
}

int LeastStages(const JobState& state) {
  return std::max(1, static_cast<int>(state.job->spec.pipeline.min_stages));
}

size_t SlotOfLastCell(const JobState& state) {
  size_t last = state.slots.size() - 1;
  for (size_t k = 0; k < state.slots.size(); ++k) {
    const std::vector<LayerRange>&cells = state.slots[k].cells, &most = state.slots[last].cells;
    if (!cells.empty() && (most.empty() || cells.back().last > most.back().last)) last = k;
  }
  return last;
}

std::vector<std::vector<LayerRange>> CellsOfSlots(const JobState& state) {
  std::vector<std::vector<LayerRange>> cells;
  for (const StageSlot& slot : state.slots) cells.push_back(slot.cells);
  return cells;
}

bool WaitsForStages(const JobState& state) { return state.activity == Activity::kWaitStages; }

JobView ViewOf(const JobState& state) {
  JobView view;
  static_cast<JobResults&>(view) = state.results;
  view.id = state.job->id;
  view.sequence = state.job->sequence;
  view.summary = SummaryOf(state.job->spec);
  view.spec = std::shared_ptr<const JobSpec>(state.job, &state.job->spec);
  view.network = NetworkOf(state.job);
  view.total_steps = TotalSteps(state);
  view.phase = state.phase;
  view.message = state.message;
  view.generation = state.generation;
  view.records = state.records;
  view.step = state.step;
  view.last_checkpoint_step = state.checkpoints.last.step;
  view.last_checkpoint_bytes = state.checkpoints.last.bytes;
  if (state.snapshots.load.whole_step.has_value()) {
    view.snapshot_step = static_cast<int64_t>(*state.snapshots.load.whole_step);
  }
  // A profile is kept over recoveries, and every plan behind it is made with it.
  if (state.profile.empty()) {
    view.forecast_flops_per_second = kAssumedFlopsPerSecond;
  } else {
    view.forecast_rate_source = RateSource::kProfile;
  }
  view.submitted_unix_seconds = state.job->submitted_unix_seconds;
  view.owner = state.job->owner;
  for (const StageSlot& slot : state.slots) {
    view.stages.push_back({slot.stage.name, slot.stage.address, slot.cells, slot.phases, slot.memory_peak, slot.place});
  }
  view.pipeline_stages = state.stages.wanted;
  return view;
}

absl::StatusOr<Transition> Apply(JobState state, const JobEvent& event) {
  if (event.job != state.job->id) {
    return absl::InvalidArgumentError(
        absl::StrCat("an event of job ", event.job, " reached job ", state.job->id));
  }
  const bool ended = IsTerminal(state.phase);
  JobTransition transition(std::move(state), event.now);
  if (ended) {
    ++transition.state().stale_events;
    // A temporary folder that was made for nobody would stay until the next start.
    if (std::holds_alternative<CheckpointBegun>(event.kind)) {
      transition.On(std::get<CheckpointBegun>(event.kind));
    }
    if (std::holds_alternative<FolderProbed>(event.kind)) {
      transition.On(std::get<FolderProbed>(event.kind));
    }
    return std::move(transition).Take();
  }
  std::visit([&transition](const auto& kind) { transition.On(kind); }, event.kind);
  return std::move(transition).Take();
}

void StartLate(JobState* state, double before, double late_seconds) {
  double& deadline = state->operation.deadline_seconds;
  if (late_seconds > 0 && deadline != 0 && deadline != before) deadline += late_seconds;
}

void StartLater(JobState* state, double seconds) {
  JobOperation& operation = state->operation;
  operation.started_seconds += seconds;
  if (operation.deadline_seconds != 0) operation.deadline_seconds += seconds;
  auto& beside = state->checkpoints.writing.beside;
  if (!beside.has_value()) return;
  beside->since_seconds += seconds;
  beside->deadline_seconds += seconds;
}

bool JobTransition::Expects(Activity activity, const Fence& fence) {
  if (state_.activity == activity && fence == FenceOf(state_)) return true;
  Stale();
  return false;
}

bool JobTransition::Answered(Activity activity, const Fence& fence, int stage) {
  if (!Expects(activity, fence)) return false;
  if (stage < 0 || stage >= static_cast<int>(state_.slots.size()) || state_.slots[stage].answered) {
    Stale();
    return false;
  }
  state_.slots[stage].answered = true;
  --state_.operation.unanswered;
  return true;
}

bool JobTransition::AllAnswered() const { return state_.operation.unanswered == 0; }

void JobTransition::BeginOperation(Activity activity, double stall_seconds) {
  state_.activity = activity;
  ++state_.attempt;
  state_.operation = {.unanswered = static_cast<int>(state_.slots.size()),
                      .started_seconds = now_.seconds,
                      .stall_seconds = stall_seconds,
                      .deadline_seconds = now_.seconds + stall_seconds};
  for (StageSlot& slot : state_.slots) slot.answered = false;
}

void JobTransition::Rest(Activity activity) {
  state_.activity = activity;
  state_.operation = {};
}

void JobTransition::Enter(JobPhase phase, const std::string& message) {
  // Steps that are done again for the last checkpoint look like any others.
  std::string text = message;
  if (!state_.checkpoints.unsaved.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "again, as ", state_.checkpoints.unsaved);
  }
  if (state_.phase == phase && state_.message == ShownText(text)) return;
  state_.phase = phase;
  Say(text);
  Record(JobRecord::Kind::kState, message);
}

void JobTransition::Say(const std::string& message) { state_.message = ShownText(message); }

JobRecord& JobTransition::Record(JobRecord::Kind kind, const std::string& message) {
  JobRecord record;
  record.number = ++state_.records;
  record.kind = kind;
  record.unix_seconds = now_.unix_seconds;
  record.step = state_.step;
  record.phase = state_.phase;
  record.message = ShownText(message);
  record.nonfinite_steps = state_.results.skipped_steps;
  records_.push_back(std::move(record));
  return records_.back();
}

std::string Place(const JobState& state) {
  return absl::StrCat("job ", state.job->id, ", step ", state.step, ", ",
                      ActivityName(state.activity));
}

std::string Place(const JobState& state, int stage) {
  return absl::StrCat(Place(state), ", ", StageText(state, stage));
}

std::string StageText(const JobState& state, int stage) {
  return absl::StrCat("stage ", stage, " (", state.slots[stage].stage.name, ")");
}

}  // namespace stagecoach
