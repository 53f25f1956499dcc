#include "services/stage/lease.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "services/common/convert/convert_control.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"

namespace stagecoach {
namespace {

constexpr double kRegisterDeadlineSeconds = 3.0;  // longer than a dial, which says why it failed
constexpr double kLongestBackoffSeconds = 1.0;
constexpr double kRefusedSeconds = 1.0;  // until a name may have become free, or a rule another
// A connection that broke is made anew for the next call: the coordinator may live.
constexpr int kUnavailableIfGone = 2;

std::unique_ptr<grpc::ClientContext> ContextWithin(double seconds) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6)));
  return context;
}

}  // namespace

Lease::Lease(const Parts& parts)
    : parts_(parts),
      stub_(v1::FleetService::NewStub(parts.dial())),
      thread_("lease", [this] { Loop(); }) {}

Lease::~Lease() { Stop(); }

void Lease::StartDraining() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    draining_ = hurry_ = true;
  }
  changed_.notify_all();
}

bool Lease::draining() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return draining_;
}

void Lease::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.Join();
}

bool Lease::WaitStopped(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return stopped_ || hurry_; });
  // Even a stage that goes at once says so first: it would be chosen until its lease ends.
  if (std::exchange(hurry_, false)) return false;
  return stopped_;
}

void Lease::Loop() {
  double seconds = 0;
  while (!WaitStopped(seconds)) {
    if (registered_) {
      seconds = RenewOnce();
    } else if (draining()) {  // nobody's, and not to be anybody's for so little time
      EndDrain("it is registered with no coordinator");
      seconds = lease_seconds_;
    } else {
      seconds = RegisterOnce();
    }
  }
}

double Lease::RegisterOnce() {
  v1::RegisterStageRequest request;
  *request.mutable_stage() = parts_.stage;
  LastDeath* const last = parts_.last_death;
  // One that fell between two commands is of no job.
  const bool tells = last != nullptr && last->death() && !last->death()->fence.job.empty();
  if (tells) *request.mutable_last_death() = ToProto(*last->death());
  SetChecksum(&request);
  v1::RegisterStageResponse response;
  auto context = ContextWithin(kRegisterDeadlineSeconds);
  grpc::Status status = stub_->RegisterStage(context.get(), request, &response);
  if (status.ok()) status = ToGrpc(CheckChecksum(&response));
  const bool denied = RefusesCaller(status);
  if (denied) Redial();
  if (denied || status.error_code() == grpc::StatusCode::ALREADY_EXISTS) {
    if (std::exchange(refusal_, status.error_message()) != status.error_message()) {
      spdlog::error("not registered: {}; trying again until {}", status.error_message(),
                    denied ? "the coordinator takes it" : "the name is free");
    }
    return kRefusedSeconds;
  }
  refusal_.clear();
  if (!status.ok()) {
    spdlog::warn("cannot register with the coordinator: {}; trying again in {:.1f} s",
                 parts_.explain(FromGrpc(status)).ToString(), backoff_seconds_);
    const double wait = backoff_seconds_;
    backoff_seconds_ = std::min(backoff_seconds_ * 1.6, kLongestBackoffSeconds);
    return wait;
  }
  backoff_seconds_ = 0.1;
  if (last != nullptr) last->Told();
  lease_seconds_ = response.lease_seconds();
  parts_.runtime->KnowTerm(response.term());
  registered_ = true;
  spdlog::info("registered as {} with the coordinator, term {}, lease {:.1f} s",
               parts_.stage.name(), response.term(), lease_seconds_);
  return lease_seconds_ / 3;
}

double Lease::RenewOnce() {
  const StageStatus status = parts_.runtime->Status();
  v1::RenewLeaseRequest request;
  request.set_name(parts_.stage.name());
  request.set_incarnation(parts_.stage.incarnation());
  // What a load is at comes with the state "loading" only: else it would be a neighbour's fault.
  const bool drains = draining(), loads = status.state == "loading";
  request.set_state(drains ? "draining" : status.state);
  *request.mutable_fence() = ToProto(status.fence);
  request.set_progress(status.progress);
  request.set_shard_progress(status.shard_progress);
  request.set_waiting_for(drains && loads ? "" : status.waiting_for);
  request.set_newest_term(status.newest_term);
  *request.mutable_telemetry() = parts_.telemetry();
  SetChecksum(&request);
  v1::RenewLeaseResponse response;
  auto context = ContextWithin(lease_seconds_);
  grpc::Status answer = stub_->RenewLease(context.get(), request, &response);
  EndDrainIfOrphaned(answer);
  if (answer.ok()) answer = ToGrpc(CheckChecksum(&response));
  if (answer.ok()) {
    lease_seconds_ = response.lease_seconds();
    parts_.runtime->KnowTerm(response.term());
    parts_.runtime->TellJobProgress(response.job_progress(), lease_seconds_);
    return lease_seconds_ / 3;
  }
  if (answer.error_code() == grpc::StatusCode::NOT_FOUND) {
    spdlog::warn("the coordinator does not know this stage any more: {}", answer.error_message());
    registered_ = false;
    return 0;
  }
  // A coordinator that was started anew may ask for more than the one before: registering says it
  // once.
  if (RefusesCaller(answer)) {
    Redial();
    registered_ = false;
    return 0;
  }
  spdlog::warn("lease not renewed: {}", answer.error_message());
  return 0.1;
}

// The connection was made with the certificate that is refused; there may be another by now.
void Lease::Redial() { stub_ = v1::FleetService::NewStub(parts_.dial()); }

// What a stage has in memory is of use to the coordinator that loaded it only. No answer in time is
// another thing: a network that stands still, behind which somebody may be at work.
void Lease::EndDrainIfOrphaned(const grpc::Status& answer) {
  const bool unknown = answer.error_code() == grpc::StatusCode::NOT_FOUND;
  const bool unavailable = answer.error_code() == grpc::StatusCode::UNAVAILABLE;
  if (answer.ok()) unavailable_ = 0;
  if (unavailable) ++unavailable_;
  if (!draining() || !(unknown || unavailable_ >= kUnavailableIfGone)) return;
  EndDrain(unknown ? "the coordinator does not know this stage" : "the coordinator is gone");
}

void Lease::EndDrain(const char* why) {
  if (!std::exchange(orphaned_, true)) {
    spdlog::info("draining: {}, there is nobody to wait for", why);
  }
  parts_.runtime->EndDrain();
}

}  // namespace stagecoach
