// The step protocol: report, decide once, apply with the next command; evaluation on the way.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/device_name.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "coordinator/job/job_transition.h"
#include "coordinator/job/step_decision.h"
#include "coordinator/job/view/class_measures.h"
#include "plan/job/epochs.h"
#include "plan/job/learning_rate_kinds.h"

namespace stagecoach {
namespace {

constexpr double kCalmSeconds = 60;

std::vector<StepReport> ReportsOf(const std::vector<StageSlot>& slots) {
  std::vector<StepReport> reports;
  reports.reserve(slots.size());
  for (const StageSlot& slot : slots) reports.push_back(slot.report);
  return reports;
}

}  // namespace

double JobTransition::StepStallSeconds() const {
  const JobLimits& limits = state_.limits;
  const bool measured = state_.average_step_seconds > 0;
  // The first step warms up and there is only a forecast, which may be far off.
  const double likely = measured ? limits.deadline_factor * state_.average_step_seconds
                                 : 2 * limits.deadline_factor * state_.forecast_step_seconds;
  const double floor =
      measured ? limits.step_deadline_floor_seconds
               : std::max(limits.first_step_deadline_seconds, limits.step_deadline_floor_seconds);
  // A card's driver frees memory and loads kernels without a sign, behind all that is queued. A
  // host that computes itself shows progress many times within an operation, however long it takes.
  const bool on_card =
      std::any_of(state_.slots.begin(), state_.slots.end(),
                  [](const StageSlot& slot) { return IsCudaDevice(slot.stage.device); });
  const double most = on_card ? likely : limits.first_step_deadline_seconds;
  return std::max(floor, std::min(likely, most));
}

bool JobTransition::BoundaryOf(int64_t every_steps, double every_epochs) const {
  if (state_.step == 0 || (every_steps == 0 && every_epochs == 0)) return false;
  if (state_.step >= last_step()) return true;
  if (every_steps > 0) return state_.step % static_cast<uint64_t>(every_steps) == 0;
  return EndsEpochs(static_cast<int64_t>(state_.step), every_epochs, StepsPerEpochOf(state_));
}

void JobTransition::Continue() {
  const EvaluationSpec& evaluation = spec().evaluation;
  const CheckpointSpec& checkpoint = spec().checkpoint;
  const bool last = state_.step >= last_step();
  const bool evaluate = !state_.evaluated && state_.evaluation_batches > 0 &&
                        BoundaryOf(evaluation.every_steps, evaluation.every_epochs);
  const bool save = !state_.saved && (last || state_.save_requested || CheckpointDue() ||
                                      BoundaryOf(checkpoint.every_steps, checkpoint.every_epochs));
  if ((evaluate || save) && state_.pending.has_value()) {
    return SendRuns(Activity::kFlush, WorkKind::kNone, 0);
  }
  if (evaluate) return StartEvaluation();
  if (save) return StartCheckpoint();
  if (last) return Finish();
  SendRuns(Activity::kTrain, WorkKind::kTrain, 0);
}

void JobTransition::SendRuns(Activity activity, WorkKind work, uint64_t evaluation_batch) {
  BeginOperation(activity, StepStallSeconds());
  RunCommand command;
  command.fence = FenceOf(state_);
  command.apply = state_.pending;
  command.work = work;
  command.evaluation_batch = evaluation_batch;
  command.average = work == WorkKind::kEvaluate && state_.evaluation_average;
  RequestSnapshot(&command);
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    actions_.push_back(SendRun{static_cast<int>(k), state_.slots[k].stage, command});
  }
}

void JobTransition::On(const Reported& event) {
  const Activity activity = state_.activity;
  if (!event.report.ok() && IsOfLastGeneration(event.fence)) return LateFailure(event);
  if (activity != Activity::kTrain && activity != Activity::kFlush &&
      activity != Activity::kEvaluate) {
    return Stale();
  }
  if (!Answered(activity, event.fence, event.stage)) return;
  if (!event.report.ok()) return OperationFailed(event.stage, event.report.status());
  if (event.report->applied != state_.pending) return AppliedOtherwise(event.stage);
  if (activity != Activity::kFlush) state_.slots[event.stage].report = *event.report;
  if (!AllAnswered()) return;
  state_.pending.reset();  // it travelled with this command
  if (activity == Activity::kTrain) return FinishTrain();
  if (activity == Activity::kEvaluate) return FinishEvaluationBatch();
  Continue();
}

// A decision that did not arrive as it was made would train another model, and nobody could tell.
void JobTransition::AppliedOtherwise(int stage) {
  const std::string& name = state_.slots[stage].stage.name;
  Blame(name, "error");
  StageFailed({name}, TextAt("applied another decision than it was sent", Place(stage)));
}

void JobTransition::FinishTrain() {
  const std::vector<StepReport> reports = ReportsOf(state_.slots);
  absl::StatusOr<StepDecision> decision =
      DecideStep(reports, layers(), spec().training.gradient_clip_norm);
  if (!decision.ok()) {
    return StageFailed({}, TextAt(decision.status().ToString(), Place()));
  }

  AddMeanIou(state_.job->network.objective, reports.back().class_counts, &decision->measures);

  const int64_t index = static_cast<int64_t>(state_.step);
  ApplyDecision apply;
  apply.step = state_.step;
  apply.apply = decision->finite;
  apply.optimizer_steps = OptimizerSteps({.step = state_.step,
                                          .skipped_steps = state_.skipped_steps,
                                          .optimizer_start = state_.optimizer_start});
  apply.learning_rate = LearningRateAt(spec().training.learning_rate, index, TotalSteps(state_),
                                       StepsPerEpochOf(state_));
  apply.gradient_scale = decision->gradient_scale;

  const double seconds = now_.seconds - state_.operation_started_seconds;
  state_.step_seconds = seconds;
  state_.unsaved_train_seconds += seconds;
  state_.tokens_per_second = seconds > 0 ? static_cast<double>(decision->targets) / seconds : 0;
  state_.bubble = MeasuredBubble(reports, seconds);
  for (StageSlot& slot : state_.slots) {
    slot.phases = slot.report.phases;
    slot.memory_peak = slot.report.memory_peak;
    state_.data_wait_seconds += slot.phases[Phase::kDataWait];
  }
  const double weight = state_.limits.average_weight;
  double& average = state_.average_step_seconds;
  average = average == 0 ? seconds : weight * seconds + (1 - weight) * average;
  NoteSnapshots();
  state_.pending = apply;
  ++state_.step;
  state_.evaluated = state_.saved = false;
  // Steps that are done again, behind an old checkpoint, are no trouble either if they go on for
  // long. But where they are done for the last checkpoint alone, each try waits longer, however
  // long they take.
  const bool calm = now_.seconds - state_.loaded_seconds >= kCalmSeconds;
  if (calm && state_.unsaved.empty()) state_.setbacks = 0;
  if (state_.step > state_.deaths.step) state_.deaths.count = 0;
  if (state_.step > state_.furthest_step) {
    state_.furthest_step = state_.step;
    state_.failures.clear();
    state_.setbacks = 0;
  }
  if (!decision->finite) ++state_.skipped_steps;
  if (!decision->empty) NoteLoss(*decision);
  RecordStep(*decision, apply.learning_rate);
  const int64_t limit = std::max<int64_t>(1, spec().training.max_nonfinite_steps);
  if (state_.consecutive_nonfinite >= limit) {
    return Fail(absl::FailedPreconditionError(
        absl::StrCat("loss or gradients were not finite in ", state_.consecutive_nonfinite,
                     " steps in a row, from step ", state_.nonfinite_since,
                     " on (training.max_nonfinite_steps=", spec().training.max_nonfinite_steps,
                     "); lower the learning rate or set gradient_clip_norm")));
  }
  if (state_.step >= last_step()) Enter(JobPhase::kFinishing, state_.reached_text);
  Continue();
}

void JobTransition::NoteLoss(const StepDecision& decision) {
  state_.last_loss = decision.loss;
  state_.last_measures = decision.measures;
  state_.has_loss = true;
  if (decision.finite) {
    state_.consecutive_nonfinite = 0;
    state_.nonfinite_since = 0;
  } else if (++state_.consecutive_nonfinite == 1) {
    state_.nonfinite_since = state_.step;
  }
}

void JobTransition::RecordStep(const StepDecision& decision, double learning_rate) {
  JobRecord& record = Record(JobRecord::Kind::kStep, "");
  record.loss = decision.loss;
  record.measures = decision.measures;
  record.learning_rate = learning_rate;
  record.gradient_norm = decision.gradient_norm;
  record.tokens_per_second = state_.tokens_per_second;
  record.step_seconds = state_.step_seconds;
  record.bubble = state_.bubble;
  record.bubble_ideal = state_.bubble_ideal;
  record.skipped = !decision.finite;
}

void JobTransition::StartEvaluation() {
  state_.evaluation_average = false;
  state_.held_out.Begin();
  StartEvaluationHalf();
}

void JobTransition::StartEvaluationHalf() {
  state_.evaluation_batch = 0;
  state_.evaluation_loss_sum = state_.evaluation_terms = 0;
  state_.evaluation_sums.clear();
  state_.evaluation_counts.clear();
  SendRuns(Activity::kEvaluate, WorkKind::kEvaluate, 0);
}

void JobTransition::FinishEvaluationBatch() {
  const StepReport& last = state_.slots.back().report;
  state_.evaluation_loss_sum += last.loss_sum;
  state_.evaluation_terms += last.terms;
  state_.held_out.Add(last);
  std::vector<Measure>& sums = state_.evaluation_sums;
  for (size_t i = 0; i < last.measures.size(); ++i) {
    if (i == sums.size()) sums.push_back({last.measures[i].name, 0});
    sums[i].value += last.measures[i].value;
  }
  AddCounts(last.class_counts, &state_.evaluation_counts);
  if (++state_.evaluation_batch < state_.evaluation_batches) {
    return SendRuns(Activity::kEvaluate, WorkKind::kEvaluate,
                    static_cast<uint64_t>(state_.evaluation_batch));
  }
  FinishEvaluationHalf();
}

void JobTransition::FinishEvaluationHalf() {
  const double terms = state_.evaluation_terms;
  const bool more = spec().training.average.decay > 0 && !state_.evaluation_average;
  const Objective& objective = state_.job->network.objective;
  if (terms > 0 && !state_.evaluation_average) {
    state_.live_loss = state_.evaluation_loss_sum / terms;
    state_.live_measures = MeansOf(state_.evaluation_sums, terms);
    AddClassMeasures(objective, state_.evaluation_counts, &state_.live_measures);
  } else if (terms > 0) {
    std::vector<Measure> sums = {{"loss", state_.evaluation_loss_sum}};
    sums.insert(sums.end(), state_.evaluation_sums.begin(), state_.evaluation_sums.end());
    std::vector<Measure> means = MeansOf(sums, terms);
    AddClassMeasures(objective, state_.evaluation_counts, &means);
    for (const Measure& mean : means) {
      state_.live_measures.push_back({absl::StrCat("average_", mean.name), mean.value});
    }
  }
  if (terms > 0 && more) {
    state_.evaluation_average = true;
    return StartEvaluationHalf();
  }
  state_.evaluated = true;
  if (terms > 0) RecordEvaluation();
  Continue();
}

void JobTransition::RecordEvaluation() {
  state_.held_out.End(state_.step);
  JobRecord& record = Record(JobRecord::Kind::kEvaluation, "");
  record.loss = state_.live_loss;
  record.measures = state_.live_measures;
  state_.evaluation_measures = record.measures;
  state_.evaluation_loss = record.loss;
  state_.has_evaluation_loss = true;
  uint64_t& since = state_.nonfinite_evaluation_since;
  if (!std::isfinite(record.loss)) {
    // Evaluated again after a recovery, it may have begun earlier.
    since = since == 0 ? state_.step : std::min(since, state_.step);
    return;
  }
  since = 0;
  EndIfReached(record.loss, state_.evaluation_measures);
}

void JobTransition::EndIfReached(double loss, const std::vector<Measure>& measures) {
  const UntilSpec& until = spec().training.until;
  if (!until.given() || state_.reached_step > 0) return;
  std::vector<std::string> words;
  bool reached = true;
  if (until.loss > 0) {
    reached = loss <= until.loss;
    words.push_back(absl::StrCat("loss ", loss, " <= ", until.loss));
  }
  for (const auto& [name, least] : until.shares()) {
    if (least == 0) continue;
    const auto found =
        std::find_if(measures.begin(), measures.end(),
                     [&wanted = name](const Measure& measure) { return measure.name == wanted; });
    reached = reached && found != measures.end() && found->value >= least;
    if (reached) words.push_back(absl::StrCat(name, " ", found->value, " >= ", least));
  }
  if (!reached) return;
  state_.reached_step = state_.step;
  state_.reached_text = absl::StrCat("training.until is reached at step ", state_.step, ": ",
                                     absl::StrJoin(words, ", "));
  Enter(JobPhase::kFinishing, state_.reached_text);
}

}  // namespace stagecoach
