// The coordinator of a SimulatedCluster, its virtual time, and what tests ask for.
#include "coordinator/testing/simulated_cluster.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "network/zoo/gpt.h"
#include "plan/data/text.h"
#include "plan/learning_rates/constant.h"

namespace stagecoach {
namespace {

// There is one under all of SQLite, so clusters that live at the same time share it.
std::shared_ptr<MemoryDisk> SharedDisk() {
  static std::weak_ptr<MemoryDisk> shared;
  std::shared_ptr<MemoryDisk> disk = shared.lock();
  if (disk == nullptr) shared = disk = std::make_shared<MemoryDisk>();
  return disk;
}

std::string NewFolder() {
  static int number = 0;
  return absl::StrCat("/cluster-", ++number);
}

}  // namespace

JobSpec SmallJob(int stages) {
  JobSpec spec;
  spec.name = "small";
  spec.seed = 7;
  spec.network = GptSpec{.layers = 2, .width = 4, .heads = 2, .context = 4, .vocabulary = 8};
  spec.data = TextData{.path = "/data/text"};
  spec.training.steps = 7;
  spec.training.batch_size = 4;
  spec.training.micro_batches = 2;
  spec.training.learning_rate = ConstantRate{.peak = 0.01};
  spec.training.gradient_clip_norm = 1.0;
  spec.pipeline.stages = stages;
  spec.pipeline.partition.kind = PartitionSpec::Kind::kUniform;
  spec.pipeline.replacement_timeout_seconds = 20;
  spec.checkpoint.every_steps = 3;
  spec.checkpoint.keep = 2;
  spec.evaluation.every_steps = 3;
  spec.evaluation.batches = 2;
  return spec;
}

SimulatedCluster::SimulatedCluster(int stages, JobManagerOptions options)
    : options_(std::move(options)),
      disk_(SharedDisk()),
      folder_(NewFolder()),
      store_(&files_, "/checkpoints") {
  StartCoordinator();
  for (int i = 0; i < stages; ++i) AddStage(i);
}

SimulatedCluster::~SimulatedCluster() { CrashCoordinator(); }

void SimulatedCluster::StartCoordinator() {
  absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(journal_path());
  CHECK(journal.ok()) << journal.status();
  journal_ = *std::move(journal);
  // Coarser than LeastTerm, so that a journal that went back is behind what stages know.
  const absl::StatusOr<uint64_t> term =
      journal_->RaiseTerm(static_cast<uint64_t>(clock_.UnixSeconds()));
  CHECK(term.ok()) << term.status();
  const uint64_t epoch = ++epoch_;
  JobLoop::Parts parts;
  parts.options = options_;
  parts.options.state_folder = state_folder_;
  parts.outside = {this, &store_, &files_, &codec_, &clock_};
  parts.outside.on_record = [this](const std::string& job, const JobRecord& record) {
    if (record.kind == JobRecord::Kind::kStep) steps_[job] = record.step;
    if (!record.details.empty()) logged_details.push_back(record.details);
    if (record.kind == JobRecord::Kind::kFinished) ends_.insert(job);
  };
  parts.journal = journal_.get();
  parts.term = *term;
  parts.post = [this, epoch](JobLoop::Work work) {
    if (epoch == epoch_) posts_.push_back(std::move(work));
  };
  parts.effect = [this](uint64_t, JobLoop::Work work) {
    if (effect_seconds > 0) return After(effect_seconds, std::move(work));
    effects_.push_back(std::move(work));
  };
  parts.plan = Worker(&plan_seconds);
  parts.check = Worker(&check_seconds);
  parts.owns_folder = [this] { return folder_error; };
  parts.outside.on_unknown_jobs = [this](const std::vector<std::string>& jobs) {
    unknown_jobs = jobs;
  };
  parts.outside.on_folder_lost = [this](const absl::Status& why) { folder_lost.push_back(why); };
  parts.effect_progress = [this](uint64_t) {
    return storage_stuck ? 0 : static_cast<uint64_t>(now());
  };
  loop_ = std::make_unique<JobLoop>(std::move(parts));
  CHECK_OK(loop_->Open());
  for (const auto& [id, records] : records_) Watch(id);
}

std::function<void(JobLoop::Work)> SimulatedCluster::Worker(const double* seconds) {
  const auto free_at = std::make_shared<double>(0);
  return [this, seconds, free_at, epoch = epoch_](JobLoop::Work work) {
    if (*seconds == 0) return effects_.push_back(std::move(work));
    *free_at = std::max(*free_at, now()) + *seconds;
    After(*free_at - now(), [this, epoch, work = std::move(work)] {
      if (epoch == epoch_) work();
    });
  };
}

void SimulatedCluster::CrashCoordinator() {
  ++epoch_;
  posts_.clear();
  effects_.clear();
  loop_.reset();
  const MemoryDisk::State state = disk_->state();
  disk_->Set(MemoryDisk::State::kFrozen);
  journal_.reset();
  disk_->Set(state);
}

void SimulatedCluster::InLoop(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  work();
  loop_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
}

Moment SimulatedCluster::Now() const { return {clock_.MonotonicSeconds(), clock_.UnixSeconds()}; }

void SimulatedCluster::AdvanceTo(double seconds) {
  const double wait = seconds - now();
  if (wait > 0) clock_.AdvanceNanos(static_cast<int64_t>(std::ceil(wait * 1e9)) + 1);
}

void SimulatedCluster::RunFirst() {
  AdvanceTo(later_.begin()->first);
  const std::function<void()> first = std::move(later_.begin()->second);
  later_.erase(later_.begin());
  first();
}

void SimulatedCluster::KeepLoopBusy(double seconds) {
  const double end = now() + seconds;
  while (!later_.empty() && later_.begin()->first <= end) RunFirst();
  AdvanceTo(end);
}

void SimulatedCluster::After(double seconds, std::function<void()> work) {
  later_.emplace(now() + seconds, std::move(work));
}

void SimulatedCluster::AddStage(int number) {
  auto stage = std::make_unique<SimulatedStage>();
  stage->name = absl::StrCat("stage-", number);
  stage->address = absl::StrCat("host-", number, ":8101");
  stage->incarnation = absl::StrCat("i", ++incarnations_);
  stages_[number] = std::move(stage);
  Register(number);
}

void SimulatedCluster::Register(int number) {
  SimulatedStage& stage = *stages_.at(number);
  const int epoch = ++stage.heartbeat_epoch;
  if (loop_ != nullptr) {
    StageRegistration registration;
    registration.name = stage.name;
    registration.incarnation = stage.incarnation;
    registration.address = stage.address;
    registration.identity = stage.address;
    CHECK_OK(loop_->RegisterStage(registration, Now(), stage.last_death).status());
  }
  After(options_.lease_seconds / 3, [this, number, epoch] { Heartbeat(number, epoch); });
}

void SimulatedCluster::Heartbeat(int number, int epoch) {
  SimulatedStage& stage = *stages_.at(number);
  if (!stage.alive || stage.stopped || stage.heartbeat_epoch != epoch) return;
  if (loop_ != nullptr) {
    StageHeartbeat heartbeat;
    heartbeat.name = stage.name;
    heartbeat.incarnation = stage.incarnation;
    if (ShowsProgress(stage)) ++stage.progress;
    heartbeat.progress = stage.progress;
    if (now() < stage.writes_until && !stage.hung) ++stage.shard_progress;
    heartbeat.shard_progress = stage.shard_progress;
    if (stage.loaded) heartbeat.newest_term = stage.command.fence.term;
    if (!stage.hung && stage.loaded) heartbeat.waiting_for = "activation of micro-batch 0";
    if (!stage.loading.empty()) {
      heartbeat.state = kLoadingState;
      heartbeat.fence = stage.loading_fence;
      heartbeat.waiting_for = stage.loading;
    }
    // Heard when the loop's thread comes to it.
    posts_.push_back([this, heartbeat, arrived = Now(), number, epoch] {
      const absl::Status status = loop_->RenewLease(heartbeat, arrived).status();
      const bool same = stages_.at(number)->heartbeat_epoch == epoch;
      if (absl::IsNotFound(status) && same) Register(number);
    });
  }
  After(options_.lease_seconds / 3, [this, number, epoch] { Heartbeat(number, epoch); });
}

// Who waits for a hung neighbour does nothing either.
bool SimulatedCluster::ShowsProgress(const SimulatedStage& stage) const {
  if (now() >= stage.busy_until) return false;
  return std::none_of(stages_.begin(), stages_.end(), [&stage](const auto& entry) {
    const SimulatedStage& other = *entry.second;
    const bool neighbours = other.loaded && !other.aborted && stage.loaded &&
                            other.command.fence.job == stage.command.fence.job;
    return other.hung && (&other == &stage || neighbours);
  });
}

void SimulatedCluster::KeepBusy(SimulatedStage& stage, double seconds, std::function<void()> done) {
  stage.busy_until = now() + seconds;
  After(seconds + kLatency, std::move(done));
}

void SimulatedCluster::KillStage(int number) {
  SimulatedStage& stage = *stages_.at(number);
  stage.alive = false;
  const absl::Status broken =
      absl::UnavailableError(absl::StrCat("link to ", stage.name, " broke"));
  if (stage.loaded) BreakPasses(stage.command.fence.job, broken);
  stage.loaded = false;
}

void SimulatedCluster::CrashStage(int number, const std::string& signal,
                                  const std::string& instruction) {
  const SimulatedStage& dying = stage(number);
  Fence fence = dying.command.fence;
  fence.step = dying.next_step;
  KillStage(number);
  stage(number).last_death = StageDeath{signal, fence, MicroBatchId(1), instruction, "linear"};
}

void SimulatedCluster::RestartStage(int number) {
  SimulatedStage fresh;
  static_cast<StageMachine&>(fresh) = stage(number);
  fresh.incarnation = absl::StrCat("i", ++incarnations_);
  stage(number) = fresh;
  Register(number);
}

void SimulatedCluster::ContinueStage(int number) {
  stage(number).stopped = false;
  Heartbeat(number, stage(number).heartbeat_epoch);
}

bool SimulatedCluster::Step() {
  ++events_;
  const auto run_first = [](std::deque<std::function<void()>>& queue) {
    const std::function<void()> work = std::move(queue.front());
    queue.pop_front();
    work();
  };
  if (!posts_.empty()) return InLoop([&] { run_first(posts_); }), true;
  if (!effects_.empty()) return run_first(effects_), true;
  const double infinity = std::numeric_limits<double>::infinity();
  const double work = later_.empty() ? infinity : later_.begin()->first;
  double tick = infinity;
  if (loop_ != nullptr) InLoop([&] { tick = loop_->NextTickSeconds(); });
  if (std::min(work, tick) == infinity) return false;
  if (work < tick) return RunFirst(), true;
  AdvanceTo(tick);
  InLoop([this] { loop_->Tick(now()); });
  return true;
}

bool SimulatedCluster::RunUntil(const std::function<bool()>& condition, double seconds) {
  const double end = now() + seconds;
  while (!condition()) {
    if (now() > end || !Step()) return false;
  }
  return true;
}

bool SimulatedCluster::RunToEnd(const std::string& id, double seconds) {
  return RunUntil(
      [&] {
        return loop_ != nullptr && IsTerminal(View(id).phase) && !records_[id].empty() &&
               records_[id].back().kind == JobRecord::Kind::kFinished;
      },
      seconds);
}

absl::StatusOr<JobView> SimulatedCluster::Submit(const std::string& id, const JobSpec& spec,
                                                 const JobCaller& caller) {
  std::optional<absl::StatusOr<JobView>> answer;
  loop_->Submit(
      id, spec, [&answer](absl::StatusOr<JobView> view) { answer = std::move(view); }, {}, caller);
  CHECK(RunUntil([&] { return answer.has_value(); })) << "Submit must answer";
  if (answer->ok() && !records_.contains((*answer)->id)) {
    records_[(*answer)->id];
    Watch((*answer)->id);
  }
  return *answer;
}

absl::StatusOr<Plan> SimulatedCluster::PlanJob(const JobSpec& spec) {
  std::optional<absl::StatusOr<Plan>> answer;
  loop_->PlanJob(spec, [&answer](absl::StatusOr<Plan> plan) { answer = std::move(plan); });
  CHECK(RunUntil([&] { return answer.has_value(); })) << "PlanJob must answer";
  return *std::move(answer);
}

void SimulatedCluster::Watch(const std::string& id) {
  std::vector<JobRecord>& records = records_[id];
  loop_->Watch(
      next_watch_++, id, records.empty() ? 0 : records.back().number,
      [&records](const JobRecord& record) {
        records.push_back(record);
        return true;
      },
      [](const absl::Status&) {});
}

JobView SimulatedCluster::View(const std::string& id) {
  absl::StatusOr<JobView> view = loop_->Get(id);
  CHECK(view.ok()) << view.status();
  return *std::move(view);
}

absl::Status SimulatedCluster::Cancel(const std::string& id) { return loop_->Cancel(id).status(); }

}  // namespace stagecoach
