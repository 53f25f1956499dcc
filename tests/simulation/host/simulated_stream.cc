#include "tests/simulation/host/simulated_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "stage/link/grpc/messages/frame_buffer.h"

namespace stagecoach {
namespace {

constexpr double kMostStreamThread =
    0.00005;  // until the process's thread of gRPC gets round to it
constexpr double kMostStreamBackoff = 1.0;
// Of flips, those outside of a frame: they break the connection, or the rest of it is swallowed.
constexpr double kBreaks = 0.2, kSwallows = 0.1;

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  CHECK(buffer.Dump(&slices).ok()) << "a frame of our own";
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

SimulatedStream::SimulatedStream(SimulatedLinks* links, bool client,
                                 SimulatedNetwork::ConnectionPointer connection,
                                 std::shared_ptr<LinkCore> core)
    : links_(links),
      network_(links->parts().network),
      host_(links->parts().host),
      process_(links->parts().process),
      client_(client),
      connection_(std::move(connection)),
      core_(std::move(core)) {}

void SimulatedStream::Post(double seconds, void (SimulatedStream::*what)()) {
  network_->Post(host_, process_, seconds, [self = shared_from_this(), what] {
    if (self->links_ != nullptr) (self.get()->*what)();
  });
}

// ---- from dialling to the first message ---------------------------------------------------------

void SimulatedStream::DialTo(int host) {
  peer_host_ = host;
  core_->Attach(shared_from_this(), std::nullopt);
  Redial();
}

// Of a call that waits for its connection.
void SimulatedStream::Redial() {
  if (over_) return;
  network_->Dial(
      host_, process_, peer_host_,
      [self = shared_from_this()](absl::StatusOr<SimulatedNetwork::ConnectionPointer> connection) {
        if (self->links_ == nullptr) return;
        if (connection.ok()) return self->Connected(*std::move(connection));
        self->Post(self->backoff_seconds_, &SimulatedStream::Redial);
        self->backoff_seconds_ = std::min(self->backoff_seconds_ * 1.6, kMostStreamBackoff);
      });
}

void SimulatedStream::Connected(SimulatedNetwork::ConnectionPointer connection) {
  if (over_) return connection->Close(0);
  connection_ = std::move(connection);
  ListenForTheEnd();
  connection_->Send(0, [self = shared_from_this(), links_at = links_->parts().links_at,
                        host = peer_host_, connection = connection_] {
    SimulatedLinks* const links = links_at(host);
    const auto server = std::make_shared<SimulatedStream>(links, false, connection, nullptr);
    server->peer_ = self;
    server->peer_host_ = self->host_;
    self->peer_ = server;
    links->Keep(server);
    server->ListenForTheEnd();
  });
  if (waiting_.has_value()) SendBytes(*std::exchange(waiting_, std::nullopt));
}

void SimulatedStream::ListenForTheEnd() {
  connection_->WhenClosed(self(), [stream = shared_from_this()](const absl::Status& why) {
    stream->OnOver(grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(why.message())));
  });
}

void SimulatedStream::Bind(std::shared_ptr<LinkCore> core, const LinkHello& hello) {
  if (over_) return;
  core_ = std::move(core);
  core_->Attach(shared_from_this(), hello);
}

void SimulatedStream::Refuse(const absl::Status& status) { End(status); }

// ---- messages -----------------------------------------------------------------------------------

void SimulatedStream::Write(const grpc::ByteBuffer* buffer) {
  if (links_ == nullptr) return;
  writing_ = true;
  if (!over_ && connection_ == nullptr) {
    waiting_ = BytesOf(*buffer);
    return;
  }
  if (!over_) return SendBytes(BytesOf(*buffer));
  Post(0, &SimulatedStream::WriteEnded);
}

void SimulatedStream::SendBytes(std::string bytes) {
  Post(network_->random().Between(0, kMostStreamThread), &SimulatedStream::WriteEnded);
  if (network_->Flips(host_, peer_host_)) {
    SeededRandom& random = network_->random();
    const double where = random.Share();
    if (where < kBreaks) {
      connection_->Close(self());
      return OnOver(grpc::Status(grpc::StatusCode::UNAVAILABLE, "a damaged frame of HTTP/2"));
    }
    swallowed_ = swallowed_ || where < kBreaks + kSwallows;
    bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
  }
  if (swallowed_) return;
  // The peer's end is there by then: what made it was sent before.
  connection_->Send(self(), [me = shared_from_this(), bytes = std::move(bytes)] {
    if (const auto to = me->peer_.lock(); to != nullptr) to->OnBytes(bytes);
  });
}

void SimulatedStream::OnBytes(const std::string& bytes) {
  if (links_ == nullptr || over_ || !reading_) return;
  const grpc::Slice slice(bytes.data(), bytes.size());
  const grpc::ByteBuffer buffer(&slice, 1);
  if (core_ == nullptr) return OnFirst(buffer);
  reading_ = core_->OnRead(buffer);
}

void SimulatedStream::OnFirst(const grpc::ByteBuffer& buffer) {
  const absl::StatusOr<ReceivedMessage> received = ReadBuffer(buffer);
  if (!received.ok()) return Refuse(received.status());
  const auto* const hello = std::get_if<LinkHello>(&received->message);
  if (hello == nullptr) {
    return Refuse(absl::InvalidArgumentError("link stream: the first message must be a hello"));
  }
  links_->OnHello(shared_from_this(), *hello);
}

void SimulatedStream::WriteEnded() {
  if (!std::exchange(writing_, false)) return;
  if (core_ != nullptr) core_->OnWriteDone(!over_);
}

// ---- the end ------------------------------------------------------------------------------------

// Nothing comes any more: the connection broke, or the other side has ended the stream.
void SimulatedStream::OnOver(const grpc::Status& status) {
  if (links_ == nullptr || std::exchange(over_, true)) return;
  status_ = status;
  if (connection_ != nullptr) connection_->Close(self());
  if (writing_) Post(0, &SimulatedStream::WriteEnded);
  if (core_ != nullptr) {
    core_->OnReadFailed();
  } else if (!client_) {
    links_->OnEndedWhileWaiting(this);
  }
}

void SimulatedStream::Cancel() {
  if (links_ != nullptr) Post(0, &SimulatedStream::Cancelled);
}

void SimulatedStream::Cancelled() {
  OnOver(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"));
}

void SimulatedStream::End(const absl::Status& reason) {
  if (links_ == nullptr || std::exchange(finished_, true)) return;
  if (!client_) {
    const grpc::Status status(static_cast<grpc::StatusCode>(reason.code()),
                              std::string(reason.message()));
    connection_->Send(1, [client = peer_, status] {
      if (const auto stream = client.lock(); stream != nullptr) stream->OnOver(status);
    });
  }
  Post(0, &SimulatedStream::Gone);
}

// A client's status comes behind the last message, a server's end once its own status has left.
void SimulatedStream::Gone() {
  if (gone_) return;
  if (writing_ || (client_ && !over_)) return Post(0.001, &SimulatedStream::Gone);
  gone_ = true;
  if (!client_) over_ = true;
  const auto core = std::exchange(core_, nullptr);
  if (core == nullptr) return;
  core->OnGone(client_ ? status_ : grpc::Status(grpc::StatusCode::UNAVAILABLE, "closed"));
}

void SimulatedStream::LetGo() {
  links_ = nullptr;
  core_.reset();
  connection_.reset();
}

}  // namespace stagecoach
