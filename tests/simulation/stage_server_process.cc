#include "tests/simulation/stage_server_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "tests/simulation/store/store_patience.h"

namespace stagecoach {
namespace {

constexpr size_t kCommands = 16;  // of the mailbox, as StageRuntime has it
// What a turn takes: an instruction, and what is done at once.
constexpr double kLeastInstruction = 0.0005, kMostInstruction = 0.004;
constexpr double kLeastWork = 0.002, kMostWork = 0.02;
constexpr double kMostWrite = 0.4;    // of a shard beside the steps: several of them
constexpr double kMostStore = 0.005;  // of its calls of the store
// As services/stage/lease.cc.
constexpr double kRegisterDeadlineSeconds = 2, kLongestBackoffSeconds = 1, kRefusedSeconds = 1;
constexpr int kUnavailableIfGone = 2;
// As StageRuntime::Drain, with what is left of --exit-timeout.
constexpr double kDrainIdleSeconds = 2, kStageDrainSeconds = 25;

}  // namespace

StageServerProcess::StageServerProcess(const Parts& parts)
    : parts_(parts),
      backend_(MakeReferenceBackend({})),
      mailbox_(kCommands),
      links_({.network = parts.network,
              .host = parts.host,
              .process = parts.process,
              .host_of = parts.host_of,
              .name_of = parts.name_of,
              .links_at = parts.links_at,
              .progress = &progress_}),
      peers_({.network = parts.network,
              .host = parts.host,
              .host_of = parts.host_of,
              .store_at = parts.snapshots_at}),
      engine_(std::make_unique<StageEngine>(StageEngine::Parts{.options = Options(),
                                                               .backend = backend_.get(),
                                                               .connector = &links_,
                                                               .file_system = parts.files,
                                                               .clock = parts.clock,
                                                               .mailbox = &mailbox_,
                                                               .progress = &progress_,
                                                               .link_ready = [this] { Wake(0); }})),
      channel_(std::make_shared<SimulatedChannel>(parts.network, parts.host, parts.process,
                                                  parts.coordinator_host)) {
  LeaseAfter(0);
}

StageRuntime::Options StageServerProcess::Options() {
  StageRuntime::Options options;
  options.progress = &progress_;
  options.data_roots = parts_.data_roots;
  options.weight_files = parts_.data_roots;
  options.snapshot_peers = &peers_;
  options.snapshot_post = [this](std::function<void()> work) {
    parts_.network->Post(parts_.host, parts_.process, Cost(kLeastWork, kMostWork), std::move(work));
    return true;
  };
  options.writer_post = [this](std::function<void()> work) {
    WriteBeside(Cost(kLeastWork, kMostWrite) + StoreCost(), 0, std::move(work));
    return true;
  };
  options.free_memory = [] { return int64_t{1} << 40; };
  return options;
}

StageServerProcess::~StageServerProcess() {
  links_.LetGo();
  engine_.reset();
}

// ---- the executor -------------------------------------------------------------------------------

double StageServerProcess::Cost(double least, double most) {
  return parts_.pace * slowness_ * parts_.network->random().Between(least, most);
}

void StageServerProcess::Ask(StageRequest request) {
  if (parts_.meddle) parts_.meddle(&request);
  rested_seconds_ = parts_.network->time().seconds();
  if (auto* const write = std::get_if<WriteShardRequest>(&request); write != nullptr) {
    const auto done = [this, write = *write](const absl::StatusOr<ShardInfo>& shard) {
      parts_.trace->Note(shard.ok() ? "copy written" : "copy fails", parts_.host,
                         write.command.fence.step);
      write.done(shard);
    };
    if (engine_->WriteCopy(write->command, done)) return;
  }
  const absl::Status posted = mailbox_.Post(std::move(request));
  if (!posted.ok()) return Refuse(request, posted);
  Wake(0);
}

void StageServerProcess::Abort(const Fence& fence, const std::string& reason) {
  if (!mailbox_.Abort(fence, absl::AbortedError(reason)).ok()) return;
  Wake(0);
}

// The next turn is after so long at the latest.
void StageServerProcess::Wake(double seconds) {
  if (busy()) return;
  const int64_t nanos = parts_.network->time().nanos() + VirtualTime::Nanos(seconds);
  if (turn_asked_ && turn_nanos_ <= nanos) return;
  turn_asked_ = true;
  turn_nanos_ = nanos;
  parts_.network->Post(parts_.host, parts_.process, seconds, [this, turn = ++turn_] {
    if (turn == turn_) Turn();
  });
}

void StageServerProcess::Turn() {
  turn_asked_ = false;
  const ProgressScope scope(&progress_);
  if (running_.has_value()) return GoOn(engine_->Advance());
  if (!mailbox_.HasWork()) return;
  std::optional<StageRequest> request = mailbox_.Next();
  engine_->HandleAbort();
  if (request.has_value()) {
    Take(*std::move(request));
  } else {
    Wake(0);
  }
}

void StageServerProcess::GoOn(StageEngine::Going going) {
  if (!going.answer.has_value()) {
    const double wait = static_cast<double>(going.wait.count()) * 1e-9;
    return Wake(wait > 0 ? wait : Cost(kLeastInstruction, kMostInstruction));
  }
  const RunRequest request = *std::exchange(running_, std::nullopt);
  parts_.trace->Note(going.answer->ok() ? "run ends" : "run fails", parts_.host,
                     request.command.fence.step);
  if (parts_.trace->shown() && !going.answer->ok()) {
    parts_.trace->Say(going.answer->status().ToString());
  }
  request.done(*std::move(going.answer));
  Wake(Cost(kLeastInstruction, kMostInstruction));
}

double StageServerProcess::StoreCost() {
  return *parts_.store_slowness * parts_.network->random().Between(0, kMostStore);
}

bool StageServerProcess::WaitsForStore(double waited_seconds) {
  return parts_.store_away() && GoesOnWaiting(waited_seconds, parts_.network->random());
}

// What takes long and is not looked into: done at the end of its time.
void StageServerProcess::Work(double seconds, std::function<void()> work, bool with_store) {
  work_ = std::move(work);
  parts_.network->Post(parts_.host, parts_.process, seconds,
                       [this, with_store] { EndWork(with_store, 0); });
}

void StageServerProcess::EndWork(bool with_store, double waited_seconds) {
  if (with_store && WaitsForStore(waited_seconds)) {
    return parts_.network->Post(parts_.host, parts_.process, kStoreAgain, [this, waited_seconds] {
      EndWork(true, waited_seconds + kStoreAgain);
    });
  }
  const ProgressScope scope(&progress_);
  std::exchange(work_, nullptr)();
  Wake(0);
}

void StageServerProcess::WriteBeside(double seconds, double waited_seconds,
                                     std::function<void()> work) {
  parts_.network->Post(parts_.host, parts_.process, seconds,
                       [this, waited_seconds, work = std::move(work)]() mutable {
                         if (!WaitsForStore(waited_seconds)) return work();
                         WriteBeside(kStoreAgain, waited_seconds + kStoreAgain, std::move(work));
                       });
}

void StageServerProcess::LeaveHalfDone() {
  if (busy()) std::exchange(work_, nullptr)();
}

void StageServerProcess::Take(StageRequest request) {
  if (auto* const run = std::get_if<RunRequest>(&request); run != nullptr) {
    running_ = std::move(*run);
    return GoOn(engine_->Begin(running_->command));
  }
  if (auto* const load = std::get_if<LoadRequest>(&request); load != nullptr) {
    const bool probes = !load->command.probe_folder.empty();
    const bool reads = load->command.resumes() && load->command.snapshot.manifest.empty();
    const double store = probes || reads ? StoreCost() : 0;
    return Work(
        Cost(kLeastWork, kMostWork) + store,
        [this, load = std::move(*load)] {
          const absl::StatusOr<LoadResult> result = engine_->Load(load.command);
          if (result.ok() && !load.command.snapshot.manifest.empty()) parts_.loaded_from_memory();
          parts_.trace->Note(result.ok() ? "loaded" : "load fails", parts_.host,
                             load.command.fence.generation);
          if (parts_.trace->shown() && !result.ok()) parts_.trace->Say(result.status().ToString());
          load.done(result);
        },
        probes || reads);
  }
  if (auto* const write = std::get_if<WriteShardRequest>(&request); write != nullptr) {
    return Work(
        Cost(kLeastWork, kMostWork) + StoreCost(),
        [this, write = std::move(*write)] {
          const absl::StatusOr<ShardInfo> shard = engine_->WriteShard(write.command);
          parts_.trace->Note(shard.ok() ? "shard written" : "shard fails", parts_.host,
                             write.command.fence.step);
          write.done(shard);
        },
        true);
  }
  if (auto* const release = std::get_if<ReleaseRequest>(&request); release != nullptr) {
    const absl::Status released = engine_->Release(release->fence);
    release->done(released);
    return Wake(0);
  }
  auto profile = std::get<ProfileRequest>(std::move(request));
  Work(Cost(kLeastWork, kMostWork),
       [this, profile = std::move(profile)] { profile.done(engine_->Profile(profile.command)); });
}

// ---- draining -----------------------------------------------------------------------------------

void StageServerProcess::StartDraining() {
  if (std::exchange(draining_, true)) return;
  parts_.trace->Note("stage drains", parts_.host);
  mailbox_.StartDraining();
  rested_seconds_ = parts_.network->time().seconds();
  drain_until_ = rested_seconds_ + kStageDrainSeconds;
  LookWhetherDrained();
}

void StageServerProcess::LookWhetherDrained() {
  const double now = parts_.network->time().seconds();
  const bool rests = !busy() && !running_.has_value() && !mailbox_.HasWork();
  const std::string state = engine_->Status().state;
  const bool nothing_to_lose = rests && (state == "empty" || state == "aborted");
  if (!rests) rested_seconds_ = now;
  if (nothing_to_lose || now - rested_seconds_ >= kDrainIdleSeconds || now >= drain_until_) {
    return parts_.drained();
  }
  parts_.network->Post(parts_.host, parts_.process, 0.02, [this] { LookWhetherDrained(); });
}

// ---- the lease ----------------------------------------------------------------------------------

void StageServerProcess::LeaseAfter(double seconds) {
  parts_.network->Post(parts_.host, parts_.process, seconds, [this] { LeaseTurn(); });
}

void StageServerProcess::LeaseTurn() {
  // A message with a flipped bit is refused for its checksum.
  const auto damaged = [network = parts_.network, from = parts_.host,
                        to = parts_.coordinator_host] { return network->Flips(from, to); };
  const absl::Status refused = absl::UnavailableError("a message with another checksum");
  if (!registered_ && draining_) return parts_.drained();  // nobody's: there is nobody to wait for
  if (!registered_) {
    StageRegistration registration;
    registration.name = parts_.name;
    registration.incarnation = absl::StrCat("process-", parts_.process);
    registration.address = parts_.address;
    registration.device = "reference";
    registration.fingerprint = backend_->fingerprint();
    registration.identity = absl::StrCat("of-host-", parts_.host);
    return channel_->Call(
        [this, registration, damaged, refused,
         coordinator = parts_.coordinator](const SimulatedChannel::Answer& answer) {
          const auto done = [this, answer](const absl::StatusOr<LeaseGrant>& grant) {
            answer([this, grant] { OnRegistered(grant); });
          };
          if (damaged()) return done(refused);
          coordinator()->Register(registration, done);
        },
        [this](const absl::Status& failed) { OnRegistered(failed); }, kRegisterDeadlineSeconds);
  }
  const StageStatus status = engine_->Status();
  StageHeartbeat heartbeat;
  heartbeat.name = parts_.name;
  heartbeat.incarnation = absl::StrCat("process-", parts_.process);
  heartbeat.state = draining_ ? kDrainingState : status.state;
  heartbeat.fence = status.fence;
  heartbeat.progress = status.progress;
  heartbeat.waiting_for = status.waiting_for;
  heartbeat.newest_term = mailbox_.newest_term();
  heartbeat.shard_progress = status.shard_progress;
  channel_->Call(
      [this, heartbeat, damaged, refused,
       coordinator = parts_.coordinator](const SimulatedChannel::Answer& answer) {
        const auto done = [this, answer](const absl::StatusOr<LeaseGrant>& grant) {
          answer([this, grant] { OnRenewed(grant); });
        };
        if (damaged()) return done(refused);
        coordinator()->Renew(heartbeat, done);
      },
      [this](const absl::Status& failed) { OnRenewed(failed); }, lease_seconds_);
}

void StageServerProcess::OnRegistered(const absl::StatusOr<LeaseGrant>& grant) {
  parts_.trace->Note(grant.ok() ? "registered" : "not registered", parts_.host);
  if (grant.ok()) {
    backoff_seconds_ = 0.1;
    lease_seconds_ = grant->lease_seconds;
    mailbox_.KnowTerm(grant->term);
    registered_ = true;
    return LeaseAfter(lease_seconds_ / 3);
  }
  if (absl::IsAlreadyExists(grant.status())) return LeaseAfter(kRefusedSeconds);
  LeaseAfter(backoff_seconds_);
  backoff_seconds_ = std::min(backoff_seconds_ * 1.6, kLongestBackoffSeconds);
}

void StageServerProcess::OnRenewed(const absl::StatusOr<LeaseGrant>& grant) {
  if (grant.ok()) {
    unavailable_ = 0;
    lease_seconds_ = grant->lease_seconds;
    mailbox_.KnowTerm(grant->term);
    engine_->TellJobProgress(grant->job_progress, lease_seconds_);
    return LeaseAfter(lease_seconds_ / 3);
  }
  parts_.trace->Note("lease not renewed", parts_.host,
                     static_cast<uint64_t>(grant.status().code()));
  if (absl::IsUnavailable(grant.status())) ++unavailable_;
  if (draining_ && unavailable_ >= kUnavailableIfGone) return parts_.drained();
  if (!absl::IsNotFound(grant.status())) return LeaseAfter(0.1);
  registered_ = false;
  LeaseAfter(0);
}

}  // namespace stagecoach
