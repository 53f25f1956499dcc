#include "services/stage/snapshots/snapshot_client.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/grpc/own_error.h"

namespace stagecoach {
namespace {

// A megabyte takes a tenth of it on 10 Mbit/s.
constexpr auto kDeadline = std::chrono::seconds(10);
// A job has two neighbours and those it fetches from once; of jobs before nothing is needed any
// more.
constexpr size_t kMostPeers = 64;

}  // namespace

// Kept by gRPC until it is over, whoever waits.
template <typename Response>
class SnapshotClient::Call final : public std::enable_shared_from_this<Call<Response>> {
 public:
  explicit Call(RpcLoop* loop) : use_(loop) {
    context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
  }
  grpc::ClientContext* context() { return &context_; }
  grpc::CompletionQueue* queue() { return use_.loop()->queue(); }

  void Start(std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader) {
    reader_ = std::move(reader);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, finish_.Start(this->shared_from_this()));
  }
  grpc::Status Wait(Response* response) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return over_; });  // at its deadline at the latest
    *response = std::move(response_);
    return status_;
  }

 private:
  void OnFinished(bool) {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  const RpcLoop::Use use_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  RpcOperation<Call> finish_{&Call::OnFinished};
  Response response_;
  grpc::Status status_;
  std::mutex mutex_;  // guards over_
  std::condition_variable changed_;
  bool over_ = false;
};

SnapshotClient::SnapshotClient(std::shared_ptr<grpc::ChannelCredentials> credentials)
    : credentials_(std::move(credentials)) {}

void SnapshotClient::Serve(RpcLoop* loop) {
  std::lock_guard<std::mutex> lock(mutex_);
  loop_ = loop;
}

void SnapshotClient::Shutdown() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  for (grpc::ClientContext* context : under_way_) context->TryCancel();
}

std::shared_ptr<SnapshotClient::Peer> SnapshotClient::PeerForLocked(const std::string& address) {
  if (peers_.size() >= kMostPeers && !peers_.contains(address)) peers_.clear();
  std::shared_ptr<Peer>& peer = peers_[address];
  if (peer == nullptr) {
    peer = std::make_shared<Peer>();
    peer->channel = MakeControlChannel(address, credentials_);
    peer->stub = v1::SnapshotService::NewStub(peer->channel);
  }
  return peer;
}

template <typename Response, typename Start>
absl::Status SnapshotClient::Ask(const std::string& address, Response* response, Start start) {
  std::shared_ptr<Peer> peer;
  std::shared_ptr<Call<Response>> call;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return absl::CancelledError("this stage is shutting down");
    if (loop_ == nullptr) return absl::UnavailableError("this stage does not serve yet");
    peer = PeerForLocked(address);
    call = std::make_shared<Call<Response>>(loop_);  // from here on the loop waits for it
    under_way_.insert(call->context());
  }
  call->Start(start(*peer->stub, call->context(), call->queue()));
  const grpc::Status answer = call->Wait(response);
  std::lock_guard<std::mutex> lock(mutex_);
  under_way_.erase(call->context());
  const auto found = peers_.find(address);
  if (RefusesCaller(answer) && found != peers_.end() && found->second == peer) peers_.erase(found);
  // gRPC makes up codes of its own for what breaks on the way.
  return FromMarkingServer(answer, *call->context());
}

absl::Status SnapshotClient::Put(const std::string& address, const SnapshotPart& part) {
  v1::PutSnapshotPartRequest request;
  *request.mutable_fence() = ToProto(part.fence);
  request.set_key(part.key);
  request.set_kept(part.kept);
  request.set_kept_of_load(part.kept_of_load);
  if (part.offset == 0) {
    *request.mutable_shard() = ToProto(part.shard);
  } else {
    request.mutable_shard()->set_file(part.shard.info.file);
  }
  request.set_offset(part.offset);
  request.set_crc32c(Crc32c(part.bytes, HeadCrc(request)));
  request.set_data(part.bytes.data(), part.bytes.size());
  v1::PutSnapshotPartResponse response;
  return Ask(address, &response,
             [&request](auto& stub, grpc::ClientContext* context, grpc::CompletionQueue* queue) {
               return stub.PrepareAsyncPutSnapshotPart(context, request, queue);
             });
}

absl::Status SnapshotClient::Get(const std::string& address, const SnapshotRange& range,
                                 std::span<std::byte> target) {
  v1::GetSnapshotPartRequest request;
  request.set_job_id(range.job);
  request.set_key(range.key);
  request.set_step(range.step);
  request.set_file(range.file);
  request.set_offset(range.offset);
  request.set_bytes(static_cast<int32_t>(target.size()));
  SetChecksum(&request);
  v1::GetSnapshotPartResponse response;
  RETURN_IF_ERROR(
      Ask(address, &response,
          [&request](auto& stub, grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return stub.PrepareAsyncGetSnapshotPart(context, request, queue);
          }));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(response.data()));
  if (bytes.size() != target.size() || Crc32c(bytes) != response.crc32c()) {
    return absl::DataLossError(absl::StrCat("a part of ", range.file, " at byte ", range.offset,
                                            " was changed on its way from ", address));
  }
  std::memcpy(target.data(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

}  // namespace stagecoach
