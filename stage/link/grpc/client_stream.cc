#include "stage/link/grpc/client_stream.h"

#include <utility>

namespace stagecoach {
namespace {

constexpr char kMethod[] = "/stagecoach.v1.LinkService/Exchange";

}  // namespace

ClientStream::ClientStream(RpcLoop* loop, std::shared_ptr<grpc::Channel> channel,
                           std::shared_ptr<LinkCore> core, std::function<void()> gone)
    : use_(std::in_place, loop),
      channel_(std::move(channel)),
      stub_(channel_),
      core_(std::move(core)),
      gone_(std::move(gone)) {}

void ClientStream::Start() {
  context_.set_wait_for_ready(true);  // the neighbour may still be starting
  // Before the call starts: one that fails at once would find a link without a stream.
  core_->Attach(shared_from_this(), std::nullopt);
  std::lock_guard<std::mutex> lock(mutex_);
  call_ = stub_.PrepareCall(&context_, kMethod, use_->loop()->queue());
  call_->StartCall(started_.Start(shared_from_this()));
}

void ClientStream::OnStarted(bool) {
  std::lock_guard<std::mutex> lock(mutex_);
  open_ = true;
  // On a call that failed they fail as well, and the status tells why.
  ReadLocked();
  if (waiting_ != nullptr) WriteLocked(std::exchange(waiting_, nullptr));
}

void ClientStream::ReadLocked() {
  reading_ = true;
  call_->Read(&read_buffer_, read_.Start(shared_from_this()));
}

void ClientStream::WriteLocked(const grpc::ByteBuffer* buffer) {
  call_->Write(*buffer, write_.Start(shared_from_this()));
}

void ClientStream::Write(const grpc::ByteBuffer* buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_) {
    WriteLocked(buffer);
  } else {
    waiting_ = buffer;
  }
}

void ClientStream::OnReadDone(bool ok) {
  bool again = false;
  if (ok) {
    again = core_->OnRead(read_buffer_);
    read_buffer_.Clear();
  } else {
    core_->OnReadFailed();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (again) {
    ReadLocked();
    return;
  }
  reading_ = false;
  FinishIfDueLocked();
}

void ClientStream::End(const absl::Status&) {
  std::lock_guard<std::mutex> lock(mutex_);
  end_asked_ = true;
  FinishIfDueLocked();
}

// The status comes after the last message, so a read may not be under way; a write is not, by
// LinkStream's contract.
void ClientStream::FinishIfDueLocked() {
  if (!end_asked_ || !open_ || reading_ || finishing_) return;
  finishing_ = true;
  call_->Finish(&status_, finish_.Start(shared_from_this()));
}

void ClientStream::OnFinished(bool) {
  core_->OnGone(status_);
  gone_();
  use_.reset();
}

}  // namespace stagecoach
