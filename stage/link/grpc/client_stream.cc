#include "stage/link/grpc/client_stream.h"

#include <utility>

namespace stagecoach {
namespace {

constexpr char kMethod[] = "/stagecoach.v1.LinkService/Exchange";

}  // namespace

ClientStream::ClientStream(std::shared_ptr<grpc::Channel> channel, std::shared_ptr<LinkCore> core,
                           Bury bury)
    : channel_(std::move(channel)),
      stub_(channel_),
      core_(std::move(core)),
      bury_(std::move(bury)) {}

void ClientStream::Start(std::shared_ptr<ClientStream> self) {
  ClientStream& stream = *self;
  stream.self_ = self;
  stream.context_.set_wait_for_ready(true);  // the neighbour may still be starting
  stream.stub_.PrepareBidiStreamingCall(&stream.context_, kMethod, {}, &stream);
  stream.AddHold();
  stream.StartRead(&stream.read_buffer_);
  stream.StartCall();
  stream.core_->Attach(std::move(self), std::nullopt);
}

void ClientStream::OnReadDone(bool ok) {
  if (!ok) {
    core_->OnReadFailed();
    return;
  }
  const bool again = core_->OnRead(read_buffer_);
  read_buffer_.Clear();
  if (again) StartRead(&read_buffer_);
}

void ClientStream::OnDone(const grpc::Status& status) {
  std::shared_ptr<ClientStream> self = std::move(self_);
  core_->OnGone(status);
  bury_(std::move(self));
}

}  // namespace stagecoach
