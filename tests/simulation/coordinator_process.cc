#include "tests/simulation/coordinator_process.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/errors/status.h"
#include "tests/simulation/control_messages.h"
#include "tests/simulation/store/store_patience.h"

namespace stagecoach {
namespace {

constexpr double kMostThread = 0.0001;                       // until a thread gets round to it
constexpr double kLeastEffect = 0.001, kMostEffect = 0.006;  // of file work
constexpr double kLeastPlan = 0.0005, kMostPlan = 0.003;
constexpr double kLeastSync = 0.0002, kMostSync = 0.003;  // of the journal
constexpr double kDrainSeconds = 10;
constexpr double kFarSeconds = 3600;  // nothing is due before that

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorProcess>> CoordinatorProcess::Start(const Parts& parts) {
  RETURN_IF_ERROR(Annotate(parts.files->MakeFolders(parts.state_folder), "state folder"));
  std::unique_ptr<CoordinatorProcess> process(new CoordinatorProcess(parts));
  CoordinatorProcess* const raw = process.get();
  // The keys of snapshots come from it, so a flipped bit is found at the same place when the seed
  // runs again.
  ASSIGN_OR_RETURN(process->journal_, Journal::Open(parts.state_folder + "/journal.sqlite",
                                                    [random = parts.network->random()]() mutable {
                                                      return random.Bits();
                                                    }));
  JobLoop::Parts inside;
  ASSIGN_OR_RETURN(inside.term,
                   process->journal_->RaiseTerm(LeastTerm(*parts.clock),
                                                parts.network->random().Below(kMostSkippedTerms)));
  parts.trace->Note("coordinator's term", parts.host, inside.term);
  inside.options.state_folder = parts.state_folder;
  inside.options.hold_jobs = parts.holds_jobs;
  inside.outside.stages = raw;
  inside.outside.checkpoints = &parts.store->checkpoints();
  inside.outside.file_system = &parts.store->files();
  inside.outside.codec = parts.codec;
  inside.outside.clock = parts.clock;
  inside.outside.on_record = [trace = parts.trace, on_end = parts.on_end](const std::string& job,
                                                                          const JobRecord& record) {
    if (record.kind == JobRecord::Kind::kFinished) on_end(job);
    trace->Note("record", static_cast<int>(record.kind), record.step);
    if (trace->shown()) trace->Say(record.details.empty() ? record.message : record.details);
  };
  inside.journal = process->journal_.get();
  inside.post = [raw](JobLoop::Work work) { raw->Post(std::move(work)); };
  inside.effect = [raw](uint64_t number, JobLoop::Work work) {
    raw->Add(raw->effects_[number % raw->effects_.size()], raw->EffectSeconds(), std::move(work));
  };
  inside.plan = [raw](JobLoop::Work work) {
    raw->Add(raw->planner_, raw->parts_.network->random().Between(kLeastPlan, kMostPlan),
             std::move(work));
  };
  inside.check = [raw](JobLoop::Work work) {
    raw->Add(raw->checks_, raw->parts_.network->random().Between(kLeastPlan, kMostPlan),
             std::move(work));
  };
  inside.owns_folder = [] { return absl::OkStatus(); };
  inside.effect_progress = [raw](uint64_t number) {
    return raw->effects_[number % raw->effects_.size()].progress.count();
  };
  process->loop_ = std::make_unique<JobLoop>(std::move(inside));
  RETURN_IF_ERROR(process->loop_->Open());
  process->WakeLoop(0);
  return process;
}

CoordinatorProcess::~CoordinatorProcess() {
  if (closed_) loop_->Close();
  loop_.reset();
  // To close a database is to write its log into it, which a process that is killed does not.
  const MemoryDisk::State state = parts_.disk->state();
  parts_.disk->Set(MemoryDisk::State::kFrozen);
  journal_.reset();
  parts_.disk->Set(state);
}

Moment CoordinatorProcess::Now() const {
  return {parts_.clock->MonotonicSeconds(), parts_.clock->UnixSeconds()};
}

// ---- threads ------------------------------------------------------------------------------------

void CoordinatorProcess::Post(JobLoop::Work work) {
  posts_.push_back(std::move(work));
  WakeLoop(parts_.network->random().Between(0, kMostThread));
}

void CoordinatorProcess::WakeLoop(double seconds) {
  const int64_t nanos =
      std::max(parts_.network->time().nanos() + VirtualTime::Nanos(seconds), busy_nanos_);
  if (turn_asked_ && turn_nanos_ <= nanos) return;
  turn_asked_ = true;
  turn_nanos_ = nanos;
  const double wait = static_cast<double>(nanos - parts_.network->time().nanos()) * 1e-9;
  parts_.network->Post(parts_.host, parts_.process, wait, [this, turn = ++turn_] {
    if (turn == turn_) LoopTurn();
  });
}

void CoordinatorProcess::LoopTurn() {
  turn_asked_ = false;
  const uint64_t syncs = parts_.disk->syncs();
  const double heard = Now().seconds;  // all that was posted before is run now
  for (const JobLoop::Work& work : std::exchange(posts_, {})) work();
  loop_->Tick(heard);
  double busy = 0;
  for (uint64_t i = syncs; i < parts_.disk->syncs(); ++i) {
    busy += *parts_.journal_slowness * parts_.network->random().Between(kLeastSync, kMostSync);
  }
  busy_nanos_ = parts_.network->time().nanos() + VirtualTime::Nanos(busy);
  const double due = std::min(loop_->NextTickSeconds() - Now().seconds, kFarSeconds);
  WakeLoop(posts_.empty() ? std::max(due, 1e-6) : 0);
}

double CoordinatorProcess::EffectSeconds() {
  return *parts_.folder_slowness * parts_.network->random().Between(kLeastEffect, kMostEffect);
}

void CoordinatorProcess::Add(Worker& worker, double seconds, JobLoop::Work work) {
  worker.waiting.push_back(std::move(work));
  GoOn(worker, seconds);
}

void CoordinatorProcess::GoOn(Worker& worker, double seconds) {
  if (worker.works || worker.waiting.empty()) return;
  worker.works = true;
  parts_.network->Post(parts_.host, parts_.process, seconds, [this, &worker, seconds] {
    const bool files = &worker != &planner_ && &worker != &checks_;
    // Plans need no store.
    if (files && parts_.store_away() &&
        GoesOnWaiting(worker.waited_seconds, parts_.network->random())) {
      worker.waited_seconds += kStoreAgain;
      worker.works = false;
      return GoOn(worker, kStoreAgain);
    }
    worker.waited_seconds = 0;
    DoFirst(worker);
    worker.works = false;
    GoOn(worker, seconds);
  });
}

void CoordinatorProcess::DoFirst(Worker& worker) {
  const ProgressScope scope(&worker.progress);
  const JobLoop::Work work = std::move(worker.waiting.front());
  worker.waiting.pop_front();
  parts_.at_work(this);
  work();
  parts_.at_work(nullptr);
}

bool CoordinatorProcess::HasFileWork() const {
  return std::any_of(effects_.begin(), effects_.end(),
                     [](const Worker& worker) { return worker.works; });
}

void CoordinatorProcess::DoSomeFileWork() {
  for (Worker& worker : effects_) {
    if (!worker.works) continue;
    const JobLoop::Work work = std::exchange(worker.waiting.front(), [] {});
    return work();
  }
}

void CoordinatorProcess::Drain(bool save, std::function<void()> ended) {
  const auto end = [this, ended = std::move(ended)] {
    if (!std::exchange(closed_, true)) ended();
  };
  Ask([this, save, end](JobLoop& loop) {
    if (!std::exchange(draining_, true)) loop.Drain(save, end);
  });
  parts_.network->Post(parts_.host, parts_.process, kDrainSeconds, end);
}

void CoordinatorProcess::LeaveHalfDone() {
  for (Worker& worker : effects_) {
    if (!worker.works) continue;
    const JobLoop::Work work = std::move(worker.waiting.front());
    worker.waiting.pop_front();
    work();
  }
}

// ---- what comes in ------------------------------------------------------------------------------

void CoordinatorProcess::Ask(std::function<void(JobLoop&)> work) {
  parts_.network->Post(parts_.host, parts_.process, 0,
                       [this, work = std::move(work)] { Post([this, work] { work(*loop_); }); });
}

void CoordinatorProcess::Register(const StageRegistration& registration, Done done) {
  Post([this, registration, done = std::move(done), arrived = Now()] {
    done(loop_->RegisterStage(registration, arrived));
  });
}

void CoordinatorProcess::Renew(const StageHeartbeat& heartbeat, Done done) {
  Post([this, heartbeat, done = std::move(done), arrived = Now()] {
    done(loop_->RenewLease(heartbeat, arrived));
  });
}

// ---- calls to stages ----------------------------------------------------------------------------

std::shared_ptr<SimulatedChannel> CoordinatorProcess::ChannelTo(const std::string& address) {
  std::shared_ptr<SimulatedChannel>& channel = channels_[address];
  if (channel == nullptr) {
    channel = std::make_shared<SimulatedChannel>(parts_.network, parts_.host, parts_.process,
                                                 parts_.host_of(address));
  }
  return channel;
}

void CoordinatorProcess::Reconnect(const StagePeer& peer) {
  if (const auto found = channels_.find(peer.address); found != channels_.end()) {
    retired_.push_back(std::move(found->second));
    channels_.erase(found);
  }
}

template <typename Result, typename Request, typename Command>
void CoordinatorProcess::Start(const std::string& address, const Command& command,
                               std::function<void(absl::StatusOr<Result>)> done,
                               const FolderGrants& grants) {
  SimulatedNetwork* const network = parts_.network;
  const int from = parts_.host, to = parts_.host_of(address);
  const auto serve = [network, from, to, command, done, grants,
                      stage_at = parts_.stage_at](const SimulatedChannel::Answer& answer) {
    const auto reply = [network, from, to, done, answer](absl::StatusOr<Result> result) {
      answer([network, from, to, done, result = std::move(result)] {
        if (!result.ok() || !network->Flips(to, from)) return done(result);
        done(Flipped(*result, network->random()));
      });
    };
    for (const auto& [folder, grant] : grants) stage_at(to)->Admit(folder, grant);
    if (!network->Flips(from, to)) return stage_at(to)->Ask(Request{command, reply});
    const absl::StatusOr<Command> arrived = Flipped(command, network->random());
    if (!arrived.ok()) return reply(arrived.status());
    stage_at(to)->Ask(Request{*arrived, reply});
  };
  ChannelTo(address)->Call(serve, [done](const absl::Status& failed) { done(failed); });
}

CoordinatorProcess::FolderGrant CoordinatorProcess::GrantFor(const std::string& folder,
                                                             ObjectGrants::Use use) const {
  return {folder, parts_.store->GrantFor(folder, use)};
}

void CoordinatorProcess::Tell(const std::string& address,
                              std::function<void(StageServerProcess&)> work) {
  ChannelTo(address)->Call(
      [work = std::move(work), to = parts_.host_of(address),
       stage_at = parts_.stage_at](const SimulatedChannel::Answer& answer) {
        work(*stage_at(to));
        answer([] {});
      },
      [](const absl::Status&) {});
}

void CoordinatorProcess::Load(const StagePeer& peer, const LoadCommand& command, double,
                              std::function<void(absl::StatusOr<LoadResult>)> done) {
  Start<LoadResult, LoadRequest>(peer.address, command, std::move(done),
                                 {GrantFor(command.checkpoint_folder, ObjectGrants::Use::kRead),
                                  GrantFor(command.probe_folder, ObjectGrants::Use::kWrite)});
}

void CoordinatorProcess::Run(const StagePeer& peer, const RunCommand& command, double,
                             std::function<void(absl::StatusOr<StepReport>)> done) {
  Start<StepReport, RunRequest>(peer.address, command, std::move(done));
}

void CoordinatorProcess::WriteShard(const StagePeer& peer, const WriteShardCommand& command, double,
                                    std::function<void(absl::StatusOr<ShardInfo>)> done) {
  Start<ShardInfo, WriteShardRequest>(peer.address, command, std::move(done),
                                      {GrantFor(command.folder, ObjectGrants::Use::kWrite)});
}

void CoordinatorProcess::Profile(
    const StagePeer& peer, const ProfileCommand& command, double,
    std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) {
  Start<std::vector<LayerProfile>, ProfileRequest>(peer.address, command, std::move(done));
}

void CoordinatorProcess::FindSnapshots(
    const StagePeer& peer, const std::string& job, const std::string& key, double deadline_seconds,
    std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) {
  SimulatedNetwork* const network = parts_.network;
  const int from = parts_.host, to = parts_.host_of(peer.address);
  ChannelTo(peer.address)
      ->Call(
          [=, stage_at = parts_.stage_at](const SimulatedChannel::Answer& answer) {
            const bool damaged = network->Flips(from, to);
            const std::vector<HeldShard> held = stage_at(to)->snapshots().List(job, key);
            answer([=] {
              if (damaged) return done(absl::UnavailableError("a message with another checksum"));
              if (!network->Flips(to, from)) return done(held);
              done(Flipped(held, network->random()));
            });
          },
          [done](const absl::Status& failed) { done(failed); }, deadline_seconds);
}

void CoordinatorProcess::Abort(const StagePeer& peer, const Fence& fence,
                               const std::string& reason) {
  Tell(peer.address, [fence, reason](StageServerProcess& stage) { stage.Abort(fence, reason); });
}

void CoordinatorProcess::Release(const StagePeer& peer, const Fence& fence) {
  Tell(peer.address, [fence](StageServerProcess& stage) {
    stage.Ask(ReleaseRequest{fence, [](const absl::Status&) {}});
  });
}

}  // namespace stagecoach
