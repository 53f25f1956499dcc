#include "stage/runtime/stage_runtime.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors/check.h"
#include "base/threads/current_work.h"
#include "base/threads/thread.h"
#include "stage/runtime/stage_engine.h"
#include "stage/runtime/stage_mailbox.h"

namespace stagecoach {
namespace {

// A coordinator has a few commands in flight per stage; more means that nobody listens to answers.
constexpr size_t kCommands = 16;

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

struct StageRuntime::State {
  State(const Options& options, std::unique_ptr<Backend> owned_backend, LinkConnector* connector,
        FileSystem* file_system, const Clock* clock)
      : nice(options.compute_nice),
        drain_idle(Nanoseconds(options.drain_idle_seconds)),
        on_fault(options.on_fault),
        work(options.work),
        progress(options.progress != nullptr ? options.progress : &own_progress),
        backend(std::move(owned_backend)),
        mailbox(std::make_shared<StageMailbox>(kCommands)),
        // A link's last callback may run while its cell goes, so the callback shares the mailbox.
        engine({.options = options,
                .backend = backend.get(),
                .connector = connector,
                .file_system = file_system,
                .clock = clock,
                .mailbox = mailbox.get(),
                .progress = progress,
                .link_ready = [shared = mailbox] { shared->Wake(); }}) {}

  void Main();
  void TellFault();
  void Post(StageRequest request);

  void Handle(LoadRequest& request) { request.done(engine.Load(std::move(request.command))); }
  void Handle(RunRequest& request);
  void Handle(WriteShardRequest& request) { request.done(engine.WriteShard(request.command)); }
  void Handle(ReleaseRequest& request) { request.done(engine.Release(request.fence)); }
  void Handle(ProfileRequest& request) { request.done(engine.Profile(request.command)); }

  const int nice;
  const std::chrono::nanoseconds drain_idle;
  const std::function<void(const absl::Status&)> on_fault;
  bool fault_told = false;
  CurrentWork* const work;
  ProgressCounter own_progress;
  ProgressCounter* const progress;
  const std::unique_ptr<Backend> backend;
  const std::shared_ptr<StageMailbox> mailbox;
  StageEngine engine;
  Thread thread;  // last: it uses all of the above
};

void StageRuntime::State::Main() {
  // Threads of the back end are started from here and inherit it. Compute still runs if it is
  // refused.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice));
  const ProgressScope scope(progress);
  const CurrentWorkScope work_scope(work);
  while (!mailbox->closed()) {
    std::optional<StageRequest> request = mailbox->Next();
    engine.HandleAbort();
    if (request.has_value()) {
      std::visit([this](auto& of_kind) { Handle(of_kind); }, *request);
      EndWork();
      TellFault();
    }
  }
  for (StageRequest& request : mailbox->Drain()) {
    Refuse(request, absl::CancelledError("the stage is shutting down"));
  }
  engine.Drop();
}

void StageRuntime::State::Handle(RunRequest& request) {
  StageEngine::Going going = engine.Begin(request.command);
  while (!going.answer.has_value()) {
    if (going.wait.count() > 0) mailbox->WaitForChange(going.wait);
    going = engine.Advance();
  }
  request.done(*std::move(going.answer));
  // Behind the answer: else a neighbour, which can tell of a broken link only, may be heard before
  // the reason.
  engine.CloseLinks();
}

void StageRuntime::State::TellFault() {
  if (fault_told) return;
  const absl::Status fault = backend->Fault();
  if (fault.ok()) return;
  fault_told = true;
  if (on_fault) on_fault(fault);
}

void StageRuntime::State::Post(StageRequest request) {
  const absl::Status posted = mailbox->Post(std::move(request));
  if (!posted.ok()) Refuse(request, posted);
}

StageRuntime::StageRuntime(const Options& options, std::unique_ptr<Backend> backend,
                           LinkConnector* connector, FileSystem* file_system, const Clock* clock) {
  CHECK(backend != nullptr && file_system != nullptr && clock != nullptr);
  CHECK(options.data_roots != nullptr && options.weight_files != nullptr);
  state_ = std::make_unique<State>(options, std::move(backend), connector, file_system, clock);
  state_->thread = Thread("executor", [state = state_.get()] { state->Main(); });
}

StageRuntime::~StageRuntime() { Shutdown(); }

void StageRuntime::Load(LoadCommand command, std::function<void(absl::StatusOr<LoadResult>)> done) {
  state_->Post(LoadRequest{std::move(command), std::move(done)});
}

void StageRuntime::Run(RunCommand command, std::function<void(absl::StatusOr<StepReport>)> done) {
  state_->Post(RunRequest{std::move(command), std::move(done)});
}

absl::Status StageRuntime::Abort(const Fence& fence, const absl::Status& reason) {
  return state_->mailbox->Abort(fence, reason);
}

void StageRuntime::KnowTerm(uint64_t term) { state_->mailbox->KnowTerm(term); }

void StageRuntime::WriteShard(WriteShardCommand command,
                              std::function<void(absl::StatusOr<ShardInfo>)> done) {
  if (state_->engine.WriteCopy(command, done)) return;
  state_->Post(WriteShardRequest{std::move(command), std::move(done)});
}

void StageRuntime::Release(const Fence& fence, std::function<void(absl::Status)> done) {
  state_->Post(ReleaseRequest{fence, std::move(done)});
}

void StageRuntime::Profile(ProfileCommand command,
                           std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) {
  state_->Post(ProfileRequest{std::move(command), std::move(done)});
}

std::vector<HeldShard> StageRuntime::ListSnapshots(const std::string& job,
                                                   const std::string& key) const {
  return state_->engine.snapshots().List(job, key);
}

absl::Status StageRuntime::ReadSnapshot(const SnapshotRange& range,
                                        std::span<std::byte> target) const {
  return state_->engine.snapshots().Read(range, target);
}

absl::Status StageRuntime::PutSnapshot(const SnapshotPart& part) {
  return state_->engine.snapshots().Put(part).status();
}

StageStatus StageRuntime::Status() const {
  StageStatus status = state_->engine.Status();
  status.snapshot_bytes = state_->engine.snapshots().bytes();
  status.newest_term = state_->mailbox->newest_term();
  return status;
}

void StageRuntime::TellJobProgress(uint64_t number, double lease_seconds) {
  state_->engine.TellJobProgress(number, lease_seconds);
}

void StageRuntime::Drain(double seconds) {
  StageMailbox& mailbox = *state_->mailbox;
  mailbox.StartDraining();
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto deadline = now() + Nanoseconds(seconds);
  while (const std::optional<uint64_t> returns = mailbox.WaitAtRest(deadline)) {
    const std::string state = Status().state;
    if (state == "empty" || state == "aborted") return;  // nothing to lose
    if (!mailbox.WaitStirred(*returns, std::min(deadline, now() + state_->drain_idle))) return;
  }
}

void StageRuntime::EndDrain() { state_->mailbox->EndDraining(); }

void StageRuntime::Shutdown() {
  state_->mailbox->Close();
  state_->thread.Join();
  state_->engine.Close();
}

}  // namespace stagecoach
