#include "services/coordinator/watch/coordinator_metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/threads/clock.h"
#include "plan/costs/cost_model.h"
#include "services/common/observe/metric_names.h"
#include "services/coordinator/convert/convert_job.h"
#include "services/coordinator/watch/await.h"

namespace stagecoach {
namespace {

// More than are purged within a scrape.
constexpr size_t kMostForgotten = 10000;
const char* const kStates[] = {"PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"};

// "RUNNING" of JOB_STATE_RUNNING.
std::string ShownState(JobPhase phase) {
  constexpr std::string_view kPrefix = "JOB_STATE_";
  return v1::JobState_Name(JobStateOf(phase)).substr(kPrefix.size());
}

// A record has the rate alone.
double TokensOf(const JobRecord& step) {
  return std::round(step.tokens_per_second * step.step_seconds);
}

double BusySeconds(const StageAssignment& stage) {
  return stage.phases[Phase::kForward] + stage.phases[Phase::kRecompute] +
         stage.phases[Phase::kBackward];
}

double Imbalance(const std::vector<StageAssignment>& stages) {
  double slowest = 0, sum = 0;
  for (const StageAssignment& stage : stages) {
    slowest = std::max(slowest, BusySeconds(stage));
    sum += BusySeconds(stage);
  }
  return sum > 0 ? slowest * static_cast<double>(stages.size()) / sum : 1.0;
}

}  // namespace

double OldestPendingSeconds(const std::vector<JobView>& jobs, double now_unix_seconds) {
  double oldest = 0;
  for (const JobView& view : jobs) {
    // Held: somebody's wish. With a step behind it: recovering, not waiting to begin.
    if (view.phase == JobPhase::kHeld || view.step > 0) continue;
    if (JobStateOf(view.phase) != v1::JOB_STATE_PENDING) continue;
    oldest = std::max(oldest, now_unix_seconds - view.submitted_unix_seconds);
  }
  return oldest;
}

CoordinatorMetrics::CoordinatorMetrics(JobManager* manager)
    : manager_(manager), shared_(std::make_shared<Shared>()) {
  shared_->started_unix_seconds = SystemClock::Get()->UnixSeconds();
}

void CoordinatorMetrics::OnStep(Shared& shared, Track& track, const JobRecord& record) {
  const bool live = record.unix_seconds >= shared.started_unix_seconds;
  if (live && !track.first_step_seen) {
    shared.queue_seconds.Observe(std::max(0.0, record.unix_seconds - track.submitted_unix_seconds));
  }
  if (live) shared.step_seconds.Observe(record.step_seconds);
  if (record.step <= track.newest_step) {
    ++track.replayed;
  } else {
    // Of a long history only every second step is kept; what lies between was done too. But a job
    // may start behind the steps of another one.
    uint64_t applied = track.first_step_seen ? record.step - track.newest_step - 1 : 0;
    if (record.skipped) {
      ++track.skipped;
    } else {
      ++applied;
    }
    track.applied += applied;
    track.tokens += static_cast<double>(applied) * TokensOf(record);
    track.newest_step = record.step;
  }
  track.first_step_seen = true;
  track.learning_rate = record.learning_rate;
  track.gradient_norm = record.gradient_norm;
}

// What follows the state `loading` tells how it went.
void CoordinatorMetrics::OnPhase(Shared& shared, Track& track, const JobRecord& record) {
  if (track.loading_since_unix_seconds > 0) {
    const double seconds = record.unix_seconds - track.loading_since_unix_seconds;
    const bool live = record.unix_seconds >= shared.started_unix_seconds;
    if (record.phase == JobPhase::kRunning && live) {
      shared.load_seconds.Observe(std::max(0.0, seconds));
    }
    if (record.phase == JobPhase::kRecovering || record.phase == JobPhase::kFailed) {
      ++track.load_failures;
    }
  }
  const bool loading = record.phase == JobPhase::kLoading;
  track.loading_since_unix_seconds = loading ? record.unix_seconds : 0;
}

void CoordinatorMetrics::OnRecord(Shared& shared, const std::string& id, const JobRecord& record) {
  std::lock_guard<std::mutex> lock(shared.mutex);
  Track& track = shared.tracks[id];
  track.last_number = record.number;
  switch (record.kind) {
    case JobRecord::Kind::kStep:
      OnStep(shared, track, record);
      break;
    case JobRecord::Kind::kCheckpoint:
      if (record.unix_seconds >= shared.started_unix_seconds) {
        shared.save_seconds.Observe(record.step_seconds);
      }
      if (record.message.empty()) {
        track.checkpoint_unix_seconds = record.unix_seconds;
      } else {
        ++track.save_failures;
      }
      break;
    case JobRecord::Kind::kFinished:
      OnPhase(shared, track, record);
      if (!track.finished) ++shared.finished[ShownState(record.phase)];
      track.finished = true;
      break;
    case JobRecord::Kind::kState:
    case JobRecord::Kind::kRecovery:
      OnPhase(shared, track, record);
      break;
    case JobRecord::Kind::kEvaluation:
    case JobRecord::Kind::kWritten:
      break;
  }
}

// Jobs that ended before this process started are history, not events.
void CoordinatorMetrics::Follow(const JobView& view) {
  const double started = shared_->started_unix_seconds;
  if (IsTerminal(view.phase) && view.finished_unix_seconds < started) return;
  uint64_t after = 0;
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    if (shared_->HasForgotten(view)) return;
    const auto [entry, is_new] = shared_->tracks.try_emplace(view.id);
    Track& track = entry->second;
    if (track.followed) return;
    track.followed = true;
    after = track.last_number;
    if (is_new) {
      track.submitted_unix_seconds = track.checkpoint_unix_seconds = view.submitted_unix_seconds;
      if (view.submitted_unix_seconds >= started) ++shared_->submitted;
    }
  }
  manager_->Watch(
      view.id, after,
      [shared = shared_, id = view.id](const JobRecord& record) {
        OnRecord(*shared, id, record);
        return true;
      },
      [shared = shared_, id = view.id](const absl::Status& status) {
        if (status.ok()) return;
        std::lock_guard<std::mutex> lock(shared->mutex);
        const auto track = shared->tracks.find(id);
        if (track == shared->tracks.end()) return;
        if (absl::IsNotFound(status)) {  // it was forgotten meanwhile
          shared->tracks.erase(track);
        } else {  // refused by a busy job loop; the next scrape asks again
          track->second.followed = false;
        }
      });
}

void CoordinatorMetrics::Forget(const JobView& view) {
  std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->tracks.erase(view.id);
  for (const StageFaults& faults : view.faults) {
    shared_->former_faults[faults.stage_name][faults.reason] += faults.count;
  }
  shared_->forgotten.insert({view.sequence, view.id});
  if (shared_->forgotten.size() > kMostForgotten) {
    shared_->forgotten.erase(shared_->forgotten.begin());
  }
}

void CoordinatorMetrics::Write(MetricWriter& writer) {
  auto jobs = AwaitOk<std::vector<JobView>>(kLoopAnswerSeconds,
                                            [this](auto done) { manager_->List(done); });
  auto stages = Await<std::vector<StageView>>(kLoopAnswerSeconds,
                                              [this](auto done) { manager_->ListStages(done); });
  if (jobs.has_value()) {
    std::map<std::string, double> by_state;
    for (const JobView& view : *jobs) {
      Follow(view);
      ++by_state[ShownState(view.phase)];
      if (!IsTerminal(view.phase)) WriteJob(view, writer);
    }
    for (const char* state : kStates) writer.Add(metric::kJobs, {state}, by_state[state]);
    writer.Add(metric::kJobQueueOldest, {},
               OldestPendingSeconds(*jobs, SystemClock::Get()->UnixSeconds()));
  }
  writer.Add(metric::kJobWatches, {}, static_cast<double>(manager_->watches()));
  if (stages.has_value()) WriteFleet(*stages, writer);
  if (jobs.has_value() && stages.has_value()) WriteRecoveries(*jobs, *stages, writer);
  std::lock_guard<std::mutex> lock(shared_->mutex);
  writer.Add(metric::kJobsSubmitted, {}, static_cast<double>(shared_->submitted));
  for (const char* state : {"SUCCEEDED", "FAILED", "CANCELLED"}) {
    writer.Add(metric::kJobsFinished, {state}, static_cast<double>(shared_->finished[state]));
  }
  writer.Add(metric::kStepSeconds, {}, shared_->step_seconds.snapshot());
  writer.Add(metric::kJobQueueWait, {}, shared_->queue_seconds.snapshot());
  writer.Add(metric::kCheckpointSeconds, {"save"}, shared_->save_seconds.snapshot());
  writer.Add(metric::kCheckpointSeconds, {"load"}, shared_->load_seconds.snapshot());
}

void CoordinatorMetrics::WriteRecoveries(const std::vector<JobView>& jobs,
                                         const std::vector<StageView>& stages,
                                         MetricWriter& writer) {
  std::map<std::string, std::map<std::string, uint64_t>> counts;
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    counts = shared_->former_faults;
    for (const JobView& job : jobs) {
      if (shared_->HasForgotten(job)) continue;  // they are former ones now
      for (const StageFaults& faults : job.faults) {
        counts[faults.stage_name][faults.reason] += faults.count;
      }
    }
  }
  for (const StageView& stage : stages) counts[stage.registration.name];
  for (auto& [stage, by_reason] : counts) {
    for (const char* reason : kFaultReasons) {
      writer.Add(metric::kStageRecoveries, {stage, reason}, static_cast<double>(by_reason[reason]));
    }
  }
}

void CoordinatorMetrics::WriteFleet(const std::vector<StageView>& stages, MetricWriter& writer) {
  std::map<std::string, double> by_state;
  for (const StageView& stage : stages) {
    ++by_state[StageStateName(stage.state)];
    writer.Add(metric::kStageHeartbeat, {stage.registration.name},
               stage.last_heartbeat_unix_seconds);
  }
  for (StageState state :
       {StageState::kReady, StageState::kBusy, StageState::kDraining, StageState::kLost}) {
    writer.Add(metric::kStages, {StageStateName(state)}, by_state[StageStateName(state)]);
  }
}

CoordinatorMetrics::TokenSize CoordinatorMetrics::SizeOfTokens(const Network& network) {
  return {.flops_per_token = ModelFlopsPerToken(network),
          .of_text = network.InputNamed("tokens").valid()};
}

void CoordinatorMetrics::WriteJob(const JobView& view, MetricWriter& writer) {
  Track track;
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    const auto found = shared_->tracks.find(view.id);
    if (found != shared_->tracks.end()) track = found->second;
  }
  if (!track.size) {
    track.size = view.network != nullptr ? SizeOfTokens(*view.network) : TokenSize{};
    std::lock_guard<std::mutex> lock(shared_->mutex);
    const auto found = shared_->tracks.find(view.id);
    if (found != shared_->tracks.end()) found->second.size = track.size;
  }
  const std::string& id = view.id;
  writer.Add(metric::kJobInfo,
             {id, view.summary.name, view.summary.model, std::to_string(view.stages.size()),
              std::to_string(view.summary.micro_batches)},
             1);
  writer.Add(metric::kStep, {id}, static_cast<double>(view.step));
  writer.Add(metric::kTargetSteps, {id}, static_cast<double>(view.total_steps));
  writer.Add(metric::kRecoveries, {id}, static_cast<double>(view.recoveries));
  if (view.spec != nullptr && view.spec->write.has_value()) return;  // the rest is of training
  writer.Add(metric::kBubble, {id}, view.bubble);
  writer.Add(metric::kBubbleIdeal, {id}, view.bubble_ideal);
  writer.Add(metric::kImbalance, {id}, Imbalance(view.stages));
  if (view.has_loss) writer.Add(metric::kLoss, {id, "train"}, view.loss);
  if (view.has_evaluation_loss) writer.Add(metric::kLoss, {id, "eval"}, view.evaluation_loss);
  for (const Measure& measure : view.measures) {
    writer.Add(metric::kMeasure, {id, "train", measure.name}, measure.value);
  }
  for (const Measure& measure : view.evaluation_measures) {
    if (IsOfAClass(measure.name)) continue;  // there may be thousands: they stand in the records
    writer.Add(metric::kMeasure, {id, "eval", measure.name}, measure.value);
  }
  writer.Add(metric::kNonfinite, {id}, static_cast<double>(view.skipped_steps));
  const double left = static_cast<double>(view.total_steps) - static_cast<double>(view.step);
  writer.Add(metric::kExpectedEnd, {id},
             SystemClock::Get()->UnixSeconds() + std::max(0.0, left) * view.step_seconds);
  writer.Add(metric::kDataWait, {id}, view.data_wait_seconds);
  writer.Add(metric::kCheckpointStep, {id},
             static_cast<double>(std::max<int64_t>(0, view.last_checkpoint_step)));
  writer.Add(metric::kCheckpointSize, {id}, static_cast<double>(view.last_checkpoint_bytes));
  WriteTrack(view, track, writer);
}

void CoordinatorMetrics::WriteTrack(const JobView& view, const Track& track, MetricWriter& writer) {
  const std::string& id = view.id;
  writer.Add(metric::kSteps, {id, "applied"}, static_cast<double>(track.applied));
  writer.Add(metric::kSteps, {id, "skipped"}, static_cast<double>(track.skipped));
  writer.Add(metric::kSteps, {id, "replayed"}, static_cast<double>(track.replayed));
  writer.Add(metric::kExamples, {id},
             static_cast<double>(track.applied) * static_cast<double>(view.summary.batch_size));
  if (track.size->of_text) writer.Add(metric::kTokens, {id}, track.tokens);
  if (track.size->flops_per_token > 0) {
    writer.Add(metric::kFlops, {id}, track.tokens * track.size->flops_per_token);
  }
  writer.Add(metric::kLearningRate, {id}, track.learning_rate);
  writer.Add(metric::kGradientNorm, {id}, track.gradient_norm);
  writer.Add(metric::kCheckpointTime, {id}, track.checkpoint_unix_seconds);
  writer.Add(metric::kCheckpointFailures, {id, "save"}, static_cast<double>(track.save_failures));
  writer.Add(metric::kCheckpointFailures, {id, "load"}, static_cast<double>(track.load_failures));
}

}  // namespace stagecoach
