#include "stage/link/grpc/server_stream.h"

#include <utility>
#include <vector>

namespace stagecoach {
namespace {

absl::StatusOr<LinkHello> ReadHello(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) {
    return absl::InternalError("gRPC could not read a received message");
  }
  std::vector<std::span<const std::byte>> pieces;
  for (const grpc::Slice& slice : slices) {
    pieces.push_back({reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
  }
  absl::StatusOr<LinkMessage> message = DecodeLinkMessage(pieces);
  if (!message.ok()) return message.status();
  if (const auto* hello = std::get_if<LinkHello>(&*message)) return *hello;
  return absl::InvalidArgumentError("link stream: the first message must be a hello");
}

}  // namespace

ServerStream::ServerStream(grpc::CallbackServerContext* context, std::shared_ptr<Waiting> waiting)
    : waiting_(std::move(waiting)), context_(context) {}

ServerStream* ServerStream::Start(std::shared_ptr<ServerStream> self) {
  ServerStream* const stream = self.get();
  stream->self_ = std::move(self);
  stream->StartRead(&stream->read_buffer_);
  return stream;
}

std::shared_ptr<LinkCore> ServerStream::core() {
  std::lock_guard<std::mutex> lock(mutex_);
  return core_;
}

void ServerStream::OnFirstMessage() {
  const absl::StatusOr<LinkHello> hello = ReadHello(read_buffer_);
  read_buffer_.Clear();
  if (!hello.ok()) {
    Refuse(hello.status());
    return;
  }
  std::shared_ptr<ServerStream> self;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    self = self_;
  }
  waiting_->OnHello(std::move(self), *hello);
}

void ServerStream::Bind(std::shared_ptr<LinkCore> core, const LinkHello& hello) {
  std::shared_ptr<ServerStream> self;
  bool cancelled = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    core_ = core;
    self = self_;
    cancelled = cancelled_;
    if (self == nullptr) return;  // ended since
  }
  StartRead(&read_buffer_);
  core->Attach(std::move(self), hello);
  if (cancelled) core->OnReadFailed();
}

void ServerStream::OnReadDone(bool ok) {
  const std::shared_ptr<LinkCore> owner = core();
  if (owner == nullptr) {
    if (ok) {
      OnFirstMessage();
    } else {
      Refuse(absl::CancelledError("link stream: ended before its hello"));
    }
    return;
  }
  if (!ok) {
    owner->OnReadFailed();
    return;
  }
  const bool again = owner->OnRead(read_buffer_);
  read_buffer_.Clear();
  if (again) StartRead(&read_buffer_);
}

void ServerStream::OnWriteDone(bool ok) {
  if (const std::shared_ptr<LinkCore> owner = core(); owner != nullptr) owner->OnWriteDone(ok);
}

void ServerStream::OnCancel() {
  std::shared_ptr<LinkCore> owner;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    owner = core_;
  }
  if (owner != nullptr) {
    owner->OnReadFailed();
    return;
  }
  waiting_->OnEndedWhileWaiting(this);
  Refuse(absl::CancelledError("link stream: cancelled by the caller"));
}

void ServerStream::Refuse(const absl::Status& reason) { End(reason); }

void ServerStream::End(const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return;
    finished_ = true;
  }
  const auto code = static_cast<grpc::StatusCode>(reason.code());
  Finish(grpc::Status(code, std::string(reason.message())));
}

void ServerStream::Cancel() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

void ServerStream::OnDone() {
  std::shared_ptr<ServerStream> self;
  std::shared_ptr<LinkCore> owner;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    context_ = nullptr;
    self = std::move(self_);
    owner = std::move(core_);
  }
  if (owner != nullptr) owner->OnGone(grpc::Status(grpc::StatusCode::UNAVAILABLE, "closed"));
}

}  // namespace stagecoach
