#include "tests/simulation/host/simulated_channel.h"

#include <algorithm>
#include <utility>

namespace stagecoach {
namespace {

constexpr double kFirstBackoff = 0.1, kBackoffGrowth = 1.6,
                 kMostBackoff = 1.0;        // MakeControlChannel
constexpr double kMostCallThread = 0.0003;  // between a call and its first byte
constexpr double kMostRepeat = 0.05;        // until a request comes a second time

}  // namespace

void SimulatedChannel::Call(Serve serve, Failed failed, double deadline_seconds) {
  auto call = std::make_shared<OneCall>(OneCall{std::move(serve), std::move(failed)});
  if (deadline_seconds > 0) {
    network_->Post(from_, process_, deadline_seconds, [self = shared_from_this(), call] {
      self->Fail(call, absl::DeadlineExceededError("Deadline Exceeded"));
    });
  }
  if (connection_ != nullptr) return Start(call);
  if (network_->time().seconds() >= backoff_until_) Connect();
  // From the first dial that failed to one that does not, no call waits for it (pick_first in
  // TRANSIENT_FAILURE).
  if (backoff_seconds_ > 0) {
    network_->Post(from_, process_, 0, [self = shared_from_this(), call] {
      self->Fail(call, absl::UnavailableError("the last connection failed a moment ago"));
    });
    return;
  }
  waiting_.push_back(call);
}

void SimulatedChannel::Connect() {
  if (std::exchange(dialling_, true)) return;
  const double begun = network_->time().seconds();
  network_->Dial(from_, process_, to_,
                 [self = shared_from_this(),
                  begun](absl::StatusOr<SimulatedNetwork::ConnectionPointer> connection) {
                   self->dialling_ = false;
                   if (connection.ok()) return self->Connected(*std::move(connection));
                   double& backoff = self->backoff_seconds_;
                   backoff = std::clamp(backoff * kBackoffGrowth, kFirstBackoff, kMostBackoff);
                   self->backoff_until_ = begun + backoff;  // long over where nobody answered
                   self->FailAll(&self->waiting_, connection.status());
                 });
}

void SimulatedChannel::Connected(SimulatedNetwork::ConnectionPointer connection) {
  backoff_seconds_ = 0;
  connection_ = std::move(connection);
  connection_->WhenClosed(0, [weak = weak_from_this()](const absl::Status& status) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->connection_.reset();
    self->FailAll(&self->under_way_, status);
  });
  for (const CallPointer& call : std::exchange(waiting_, {})) Start(call);
}

void SimulatedChannel::Start(const CallPointer& call) {
  std::erase_if(under_way_, [](const CallPointer& old) { return old->over; });
  under_way_.push_back(call);
  network_->Post(from_, process_, network_->random().Between(0, kMostCallThread),
                 [self = shared_from_this(), call] { self->Send(call); });
  if (!network_->Repeats()) return;
  network_->Post(from_, process_, network_->random().Between(0, kMostRepeat),
                 [self = shared_from_this(), call] { self->Send(call); });
}

void SimulatedChannel::Send(const CallPointer& call) {
  if (call->over || connection_ == nullptr) return;
  const auto connection = connection_;
  connection->Send(0, [self = shared_from_this(), connection, call] {
    call->serve([self, connection, call](Work at_caller) {
      connection->Send(1, [call, at_caller = std::move(at_caller)] {
        if (!std::exchange(call->over, true)) at_caller();
      });
    });
  });
}

void SimulatedChannel::Fail(const CallPointer& call, const absl::Status& status) {
  if (std::exchange(call->over, true)) return;
  call->failed(status);
}

void SimulatedChannel::FailAll(std::vector<CallPointer>* calls, const absl::Status& status) {
  for (const CallPointer& call : std::exchange(*calls, {})) Fail(call, status);
}

}  // namespace stagecoach
