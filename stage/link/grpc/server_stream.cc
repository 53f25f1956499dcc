#include "stage/link/grpc/server_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/errors/status.h"
#include "stage/link/grpc/messages/frame_buffer.h"

namespace stagecoach {
namespace {

absl::StatusOr<LinkHello> ReadHello(const grpc::ByteBuffer& buffer) {
  ASSIGN_OR_RETURN(const ReceivedMessage received, ReadBuffer(buffer));
  if (const auto* hello = std::get_if<LinkHello>(&received.message)) return *hello;
  return absl::InvalidArgumentError("link stream: the first message must be a hello");
}

}  // namespace

ServerStream::ServerStream(Service* service, RpcLoop* loop, std::shared_ptr<Waiting> waiting)
    : use_(std::in_place, loop), service_(service), waiting_(std::move(waiting)) {}

void ServerStream::Listen(Service* service, RpcLoop* loop, std::shared_ptr<Waiting> waiting) {
  const auto stream = std::make_shared<ServerStream>(service, loop, std::move(waiting));
  stream->context_.AsyncNotifyWhenDone(stream->over_.Start(stream));
  service->RequestExchange(&stream->context_, &stream->call_, loop->queue(), loop->server_queue(),
                           stream->accept_.Start(stream));
}

void ServerStream::OnAccepted(bool ok) {
  if (!ok) {  // the server shuts down
    over_.Forget();
    return;
  }
  Listen(service_, use_->loop(), waiting_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++under_way_;  // over_
  }
  waiting_->OnOpened(shared_from_this());
  std::lock_guard<std::mutex> lock(mutex_);
  if (!finished_) ReadLocked();  // or it was refused
}

std::string ServerStream::PeerHost() const {
  const std::string peer = context_.peer();  // "ipv4:10.0.0.3:5555", "ipv6:%5B::1%5D:5555"
  return peer.substr(0, peer.rfind(':'));
}

std::string ServerStream::PeerSource() const {
  std::string source = PeerHost();
  const std::shared_ptr<const grpc::AuthContext> certificate = context_.auth_context();
  if (certificate == nullptr) return source;
  for (const grpc::string_ref& name : certificate->GetPeerIdentity()) {
    absl::StrAppend(&source, "\n", absl::string_view(name.data(), name.size()));
  }
  return source;
}

void ServerStream::ReadLocked() {
  ++under_way_;
  call_.Read(&read_buffer_, read_.Start(shared_from_this()));
}

std::shared_ptr<LinkCore> ServerStream::core() {
  std::lock_guard<std::mutex> lock(mutex_);
  return core_;
}

void ServerStream::ReadFirst(bool ok) {
  if (!ok) {
    waiting_->OnEndedWhileWaiting(this);
    Refuse(absl::CancelledError("link stream: ended before its hello"));
    return;
  }
  const absl::StatusOr<LinkHello> hello = ReadHello(read_buffer_);
  read_buffer_.Clear();
  if (hello.ok()) {
    waiting_->OnHello(shared_from_this(), *hello);
  } else {
    waiting_->OnEndedWhileWaiting(this);
    Refuse(hello.status());
  }
}

void ServerStream::Bind(std::shared_ptr<LinkCore> core, const LinkHello& hello) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (gone_) return;  // ended since; the core's deadline says so
    core_ = core;
    ReadLocked();
  }
  core->Attach(shared_from_this(), hello);
}

void ServerStream::OnReadDone(bool ok) {
  const std::shared_ptr<LinkCore> owner = core();
  if (owner == nullptr) {
    ReadFirst(ok);
  } else if (!ok) {
    owner->OnReadFailed();
  } else {
    const bool again = owner->OnRead(read_buffer_);
    read_buffer_.Clear();
    if (again) {
      std::lock_guard<std::mutex> lock(mutex_);
      ReadLocked();
    }
  }
  Release();
}

void ServerStream::Write(const grpc::ByteBuffer* buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++under_way_;
  call_.Write(*buffer, write_.Start(shared_from_this()));
}

void ServerStream::OnWriteDone(bool ok) {
  if (const std::shared_ptr<LinkCore> owner = core(); owner != nullptr) owner->OnWriteDone(ok);
  Release();
}

void ServerStream::OnOver(bool) {
  if (context_.IsCancelled()) {
    if (const std::shared_ptr<LinkCore> owner = core(); owner != nullptr) {
      owner->OnReadFailed();
    } else {
      waiting_->OnEndedWhileWaiting(this);
      Refuse(absl::CancelledError("link stream: cancelled by the caller"));
    }
  }
  Release();
}

void ServerStream::End(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (finished_) return;
  finished_ = true;
  ++under_way_;
  const auto code = static_cast<grpc::StatusCode>(reason.code());
  call_.Finish(grpc::Status(code, std::string(reason.message())),
               finish_.Start(shared_from_this()));
}

void ServerStream::Cancel() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!gone_) context_.TryCancel();
}

void ServerStream::Release() {
  std::shared_ptr<LinkCore> owner;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // A call that broke is not over for its core while a write is about to start: that one fails,
    // and then the core ends the stream.
    if (--under_way_ > 0 || !finished_) return;
    gone_ = true;
    owner = std::move(core_);
  }
  if (owner != nullptr) owner->OnGone(grpc::Status(grpc::StatusCode::UNAVAILABLE, "closed"));
  use_.reset();
}

}  // namespace stagecoach
