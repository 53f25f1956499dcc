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

double StepStallSeconds(const JobState& state) {
  const JobLimits& limits = state.limits;
  const bool measured = state.pace.step_seconds > 0;
  // The first step warms up and there is only a forecast, which may be far off.
  const double likely = measured ? limits.deadline_factor * state.pace.step_seconds
                                 : 2 * limits.deadline_factor * state.results.forecast_step_seconds;
  const double floor =
      measured ? limits.step_deadline_floor_seconds
               : std::max(limits.first_step_deadline_seconds, limits.step_deadline_floor_seconds);
  // A card's driver frees memory and loads kernels without a sign, behind all that is queued. A
  // host that computes itself shows progress many times within an operation, however long it takes.
  const bool on_card =
      std::any_of(state.slots.begin(), state.slots.end(),
                  [](const StageSlot& slot) { return IsCudaDevice(slot.stage.device); });
  const double most = on_card ? likely : limits.first_step_deadline_seconds;
  return std::max(floor, std::min(likely, most));
}

// The step ends one of the spans, or is the last.
bool BoundaryOf(const JobState& state, int64_t every_steps, double every_epochs) {
  if (state.step == 0 || (every_steps == 0 && every_epochs == 0)) return false;
  if (state.step >= LastStep(state)) return true;
  if (every_steps > 0) return state.step % static_cast<uint64_t>(every_steps) == 0;
  return EndsEpochs(static_cast<int64_t>(state.step), every_epochs, StepsPerEpochOf(state));
}

void NoteLoss(JobState& state, const StepDecision& decision) {
  state.results.loss = decision.loss;
  state.results.measures = decision.measures;
  state.results.has_loss = true;
  if (decision.finite) {
    state.nonfinite.steps = 0;
    state.nonfinite.since = 0;
  } else if (++state.nonfinite.steps == 1) {
    state.nonfinite.since = state.step;
  }
}

void AddScores(const EvaluationHalf& half, std::vector<Measure>* measures) {
  if (half.translated == 0) return;
  measures->push_back({std::string(kBleu), ScoreBleu(half.translations.bleu).score});
  measures->push_back({std::string(kChrf2), ScoreChrf(half.translations.chrf)});
}

void AddEvaluated(const StepReport& last, EvaluationHalf& half) {
  ++half.batch;
  half.loss_sum += last.loss_sum;
  half.terms += last.terms;
  std::vector<Measure>& sums = half.sums;
  for (size_t i = 0; i < last.measures.size(); ++i) {
    if (i == sums.size()) sums.push_back({last.measures[i].name, 0});
    sums[i].value += last.measures[i].value;
  }
  AddCounts(last.class_counts, &half.counts);
}

// False: the report has no such counts.
bool AddTranslated(const StepReport& last, EvaluationHalf& half) {
  const auto counts = CorpusCounts::FromNumbers(last.translation_counts);
  if (!counts.has_value()) return false;
  ++half.translated;
  half.translations += *counts;
  return true;
}

// Of the half that is done.
void TakeMeans(const Objective& objective, JobEvaluation& evaluation) {
  const EvaluationHalf& half = evaluation.half;
  if (!evaluation.average) {
    evaluation.live_loss = half.loss_sum / half.terms;
    evaluation.live_measures = MeansOf(half.sums, half.terms);
    AddClassMeasures(objective, half.counts, &evaluation.live_measures);
    return AddScores(half, &evaluation.live_measures);
  }
  std::vector<Measure> sums = {{"loss", half.loss_sum}};
  sums.insert(sums.end(), half.sums.begin(), half.sums.end());
  std::vector<Measure> means = MeansOf(sums, half.terms);
  AddClassMeasures(objective, half.counts, &means);
  AddScores(half, &means);
  for (const Measure& mean : means) {
    evaluation.live_measures.push_back({AverageOf(mean.name), mean.value});
  }
}

// What reached training.until; empty: nothing did.
std::string ReachedText(const UntilSpec& until, double loss, const std::vector<Measure>& measures) {
  if (!until.given()) return "";
  std::vector<std::string> words;
  bool reached = true;
  if (until.loss > 0) {
    reached = loss <= until.loss;
    words.push_back(absl::StrCat("loss ", loss, " <= ", until.loss));
  }
  for (const auto& [name, least] : until.least()) {
    if (least == 0) continue;
    const auto found = std::find_if(measures.begin(), measures.end(), [&wanted = name](auto& one) {
      return one.name == wanted || (wanted == kBleu && one.name == AverageOf(kBleu));
    });
    reached = reached && found != measures.end() && found->value >= least;
    if (reached) words.push_back(absl::StrCat(found->name, " ", found->value, " >= ", least));
  }
  return reached ? absl::StrJoin(words, ", ") : "";
}

void FillRecord(const JobResults& results, const StepDecision& decision, double learning_rate,
                JobRecord& record) {
  record.loss = decision.loss;
  record.measures = decision.measures;
  record.learning_rate = learning_rate;
  record.gradient_norm = decision.gradient_norm;
  record.tokens_per_second = results.tokens_per_second;
  record.step_seconds = results.step_seconds;
  record.bubble = results.bubble;
  record.bubble_ideal = results.bubble_ideal;
  record.skipped = !decision.finite;
}

}  // namespace

void ShowReports(JobState& state) {
  for (StageSlot& slot : state.slots) {
    slot.phases = slot.report.phases;
    slot.memory_peak = slot.report.memory_peak;
    state.results.data_wait_seconds += slot.phases[Phase::kDataWait];
  }
}

void NoteProgress(JobState& state, double now) {
  // Steps that are done again, behind an old checkpoint, are no trouble either if they go on for
  // long. But where they are done for the last checkpoint alone, each try waits longer, however
  // long they take.
  const bool calm = now - state.pace.since_seconds >= kCalmSeconds;
  if (calm && state.checkpoints.unsaved.empty()) state.failures.setbacks = 0;
  if (state.step > state.failures.deaths.step) state.failures.deaths.count = 0;
  if (state.step <= state.furthest_step) return;
  state.furthest_step = state.step;
  state.failures.steps.clear();
  state.failures.setbacks = 0;
}

void JobTransition::Continue() {
  const EvaluationSpec& evaluation = spec().evaluation;
  const CheckpointSpec& checkpoint = spec().checkpoint;
  const bool last = state_.step >= LastStep(state_);
  const bool evaluate = !state_.evaluation.done && state_.evaluation.batches > 0 &&
                        BoundaryOf(state_, evaluation.every_steps, evaluation.every_epochs);
  const bool save = !state_.checkpoints.done &&
                    (last || state_.checkpoints.requested || CheckpointDue(state_) ||
                     BoundaryOf(state_, checkpoint.every_steps, checkpoint.every_epochs));
  // One at a time, and the end of the job is behind them all.
  const bool awaits = state_.checkpoints.writing.beside.has_value() && (save || last);
  if (!evaluate && awaits) return AwaitCheckpoint();
  if (!evaluate && save && MayWriteBeside()) return CopyShards();
  if ((evaluate || save) && state_.pending.has_value()) {
    return SendRuns(Activity::kFlush, WorkKind::kNone, 0);
  }
  if (evaluate) return StartEvaluation(/*average=*/false);
  if (save) return StartCheckpoint();
  if (last) return Finish();
  SendRuns(Activity::kTrain, WorkKind::kTrain, 0);
}

void JobTransition::SendRuns(Activity activity, WorkKind work, uint64_t evaluation_batch,
                             bool copy) {
  BeginOperation(activity, StepStallSeconds(state_));
  RunCommand command;
  command.fence = FenceOf(state_);
  command.apply = state_.pending;
  command.work = work;
  command.evaluation_batch = evaluation_batch;
  command.average = activity == Activity::kEvaluate && state_.evaluation.average;
  if (work == WorkKind::kWrite) {
    command.rounds = state_.writing.rounds;
    command.goes_on = state_.writing.goes_on;
  }
  command.copy_shard = copy;
  RequestSnapshot(state_, &command);
  for (size_t k = 0; k < state_.slots.size(); ++k) {
    actions_.push_back(SendRun{static_cast<int>(k), state_.slots[k].stage, command});
  }
}

void JobTransition::On(const Reported& event) {
  const Activity activity = state_.activity;
  if (!event.report.ok() && IsOfLastGeneration(state_, event.fence)) return LateFailure(event);
  if (activity != Activity::kTrain && activity != Activity::kFlush &&
      activity != Activity::kEvaluate && activity != Activity::kWrite) {
    return Stale();
  }
  if (!Answered(activity, event.fence, event.stage)) return;
  if (!event.report.ok()) return OperationFailed(event.stage, event.report.status());
  // A decision that did not arrive as it was made would train another model, and nobody could tell.
  if (event.report->applied != state_.pending) {
    const std::string& name = state_.slots[event.stage].stage.name;
    Blame(state_, name, "error");
    return StageFailed(
        {name}, TextAt("applied another decision than it was sent", Place(state_, event.stage)));
  }
  state_.slots[event.stage].copied = event.report->shard_copied;
  if (activity != Activity::kFlush) state_.slots[event.stage].report = *event.report;
  if (!AllAnswered()) return;
  state_.pending.reset();  // it travelled with this command
  if (activity == Activity::kTrain) return FinishTrain();
  if (activity == Activity::kEvaluate) return FinishEvaluationBatch();
  if (activity == Activity::kWrite) return FinishWrite();
  if (state_.checkpoints.copy_tried) NoteCopies();
  Continue();
}

void JobTransition::FinishTrain() {
  const std::vector<StepReport> reports = ReportsOf(state_.slots);
  absl::StatusOr<StepDecision> decision =
      DecideStep(reports, CellsOfSlots(state_), LayersOf(state_),
                 spec().training.gradient_clip_norm);
  if (!decision.ok()) {
    return StageFailed({}, TextAt(decision.status().ToString(), Place(state_)));
  }

  AddMeanIou(state_.job->network.objective, reports[SlotOfLastCell(state_)].class_counts, &decision->measures);

  const int64_t index = static_cast<int64_t>(state_.step);
  ApplyDecision apply;
  apply.step = state_.step;
  apply.apply = decision->finite;
  apply.optimizer_steps = OptimizerSteps({.step = state_.step,
                                          .skipped_steps = state_.results.skipped_steps,
                                          .optimizer_start = state_.optimizer_start});
  apply.learning_rate = LearningRateAt(spec().training.learning_rate, index, TotalSteps(state_),
                                       StepsPerEpochOf(state_));
  apply.gradient_scale = decision->gradient_scale;

  const double seconds = now_.seconds - state_.operation.started_seconds;
  state_.results.step_seconds = seconds;
  state_.checkpoints.unsaved_train_seconds += seconds;
  state_.results.tokens_per_second =
      seconds > 0 ? static_cast<double>(decision->targets) / seconds : 0;
  state_.results.bubble = MeasuredBubble(reports, seconds);
  ShowReports(state_);
  const double weight = state_.limits.average_weight;
  double& average = state_.pace.step_seconds;
  average = average == 0 ? seconds : weight * seconds + (1 - weight) * average;
  NoteSnapshots(state_);
  state_.pending = apply;
  ++state_.step;
  state_.evaluation.done = state_.checkpoints.done = state_.checkpoints.copy_tried = false;
  NoteProgress(state_, now_.seconds);
  if (!decision->finite) ++state_.results.skipped_steps;
  if (!decision->empty) NoteLoss(state_, *decision);
  FillRecord(state_.results, *decision, apply.learning_rate, Record(JobRecord::Kind::kStep, ""));
  const int64_t limit = std::max<int64_t>(1, spec().training.max_nonfinite_steps);
  if (state_.nonfinite.steps >= limit) {
    return Fail(absl::FailedPreconditionError(
        absl::StrCat("loss or gradients were not finite in ", state_.nonfinite.steps,
                     " steps in a row, from step ", state_.nonfinite.since,
                     " on (training.max_nonfinite_steps=", spec().training.max_nonfinite_steps,
                     "); lower the learning rate or set gradient_clip_norm")));
  }
  if (state_.step >= LastStep(state_)) Enter(JobPhase::kFinishing, state_.reached.text);
  Continue();
}

void JobTransition::StartEvaluation(bool average) {
  if (!average) state_.evaluation.held_out.Begin();
  state_.evaluation.average = average;
  state_.evaluation.half = {};
  SendRuns(Activity::kEvaluate, WorkKind::kEvaluate, 0);
}

void JobTransition::FinishEvaluationBatch() {
  const StepReport& last = state_.slots[SlotOfLastCell(state_)].report;
  JobEvaluation& evaluation = state_.evaluation;
  evaluation.held_out.Add(last);
  if (evaluation.half.batch < evaluation.batches) {
    AddEvaluated(last, evaluation.half);
  } else if (!AddTranslated(last, evaluation.half)) {
    return StageFailed({}, TextAt("answers without the counts of its translations",
                                  Place(state_, static_cast<int>(state_.slots.size()) - 1)));
  }
  ContinueEvaluation();
}

void JobTransition::ContinueEvaluation() {
  JobEvaluation& evaluation = state_.evaluation;
  const EvaluationHalf& half = evaluation.half;
  const auto send = [this](WorkKind work, int64_t batch) {
    SendRuns(Activity::kEvaluate, work, static_cast<uint64_t>(batch));
  };
  if (half.batch < evaluation.batches) return send(WorkKind::kEvaluate, half.batch);
  const bool any = half.terms > 0;
  const bool more = any && spec().training.average.decay > 0 && !evaluation.average;
  // A network whose loss is not finite writes nothing.
  const bool translate = any && !more && std::isfinite(half.loss_sum);
  if (translate && half.translated < evaluation.translated_batches) {
    return send(WorkKind::kTranslate, half.translated);
  }
  if (any) TakeMeans(state_.job->network.objective, evaluation);
  if (more) return StartEvaluation(/*average=*/true);
  evaluation.done = true;
  if (any) RecordEvaluation();
  Continue();
}

void JobTransition::RecordEvaluation() {
  JobEvaluation& evaluation = state_.evaluation;
  evaluation.held_out.End(state_.step);
  JobRecord& record = Record(JobRecord::Kind::kEvaluation, "");
  record.loss = state_.results.evaluation_loss = evaluation.live_loss;
  record.measures = state_.results.evaluation_measures = evaluation.live_measures;
  state_.results.has_evaluation_loss = true;
  uint64_t& since = state_.nonfinite.evaluation_since;
  if (!std::isfinite(record.loss)) {
    // Evaluated again after a recovery, it may have begun earlier.
    since = since == 0 ? state_.step : std::min(since, state_.step);
    return;
  }
  since = 0;
  if (state_.reached.step > 0) return;
  const std::string text = ReachedText(spec().training.until, record.loss, record.measures);
  if (text.empty()) return;
  state_.reached = {state_.step,
                    absl::StrCat("training.until is reached at step ", state_.step, ": ", text)};
  Enter(JobPhase::kFinishing, state_.reached.text);
}

}  // namespace stagecoach
