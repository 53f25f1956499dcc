#include "services/coordinator/stages/grpc_stage_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/convert/clean_texts.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_network.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/grpc/own_error.h"

namespace stagecoach {
namespace {

constexpr double kSmallCallSeconds = 5.0;

// From `done` for a value to one for its message.
template <typename T>
auto Converted(std::function<void(absl::StatusOr<T>)> done) {
  return [done = std::move(done)](const auto& response) {
    if (response.ok()) {
      done(FromProto(*response));
    } else {
      done(response.status());
    }
  };
}

}  // namespace

GrpcStageClient::GrpcStageClient(std::shared_ptr<grpc::ChannelCredentials> credentials)
    : credentials_(std::move(credentials)) {}

GrpcStageClient::~GrpcStageClient() {
  std::unique_lock<std::mutex> lock(mutex_);
  closing_ = true;  // an answer may ask the next question
  for (grpc::ClientContext* context : cancellable_) context->TryCancel();
  idle_.wait(lock, [this] { return calls_ == 0; });  // cancelled calls end at once
}

std::shared_ptr<GrpcStageClient::Peer> GrpcStageClient::PeerFor(const std::string& address) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Peer>& peer = peers_[address];
  if (peer == nullptr) {
    peer = std::make_shared<Peer>();
    peer->channel = MakeControlChannel(address, credentials_);
    peer->stub = v1::StageService::NewStub(peer->channel);
  }
  return peer;
}

void GrpcStageClient::NoteRefused(const std::string& address) {
  std::lock_guard<std::mutex> lock(mutex_);
  refused_.insert(address);
}

bool GrpcStageClient::WasRefused(const std::string& address) {
  std::lock_guard<std::mutex> lock(mutex_);
  return refused_.contains(address);
}

void GrpcStageClient::Reconnect(const std::string& address) {
  std::lock_guard<std::mutex> lock(mutex_);
  refused_.erase(address);
  if (const auto found = peers_.find(address); found != peers_.end()) {
    retired_.push_back(found->second->channel);
    peers_.erase(found);
  }
  // Here, and not where its last call ends: see Ended.
  std::erase_if(retired_, [](const auto& channel) { return channel.use_count() == 1; });
}

bool GrpcStageClient::Started(grpc::ClientContext* context) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closing_) return false;
  cancellable_.insert(context);
  ++calls_;
  return true;
}

// The context holds the channel, and the last one to let go of a channel may not be one of gRPC's
// own threads: so the context is gone before the destructor is told that the call has ended.
void GrpcStageClient::Ended(std::unique_ptr<grpc::ClientContext> context) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    cancellable_.erase(context.get());
  }
  context.reset();
  std::lock_guard<std::mutex> lock(mutex_);
  if (--calls_ == 0) idle_.notify_all();
}

template <typename Request, typename Response>
void GrpcStageClient::Start(const std::string& address, Request request, double deadline_seconds,
                            Method<Request, Response> method,
                            std::function<void(absl::StatusOr<Response>)> done) {
  struct Call {
    std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
    Request request;
    Response response;
  };
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  SetChecksum(&call->request);
  call->context->set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::microseconds(static_cast<int64_t>(deadline_seconds * 1e6)));
  if (call->request.ByteSizeLong() > static_cast<size_t>(kControlMessageBytes)) {
    return done(absl::InvalidArgumentError(
        absl::StrCat("a message of ", call->request.ByteSizeLong(), " bytes to a stage; at most ",
                     kControlMessageBytes, ": a network of fewer different layers")));
  }
  if (!Started(call->context.get())) return done(absl::CancelledError("shutting down"));
  const std::shared_ptr<Peer> peer = PeerFor(address);
  (peer->stub->async()->*method)(call->context.get(), &call->request, &call->response,
                                 [this, call, address, done](const grpc::Status& status) {
                                   if (RefusesCaller(status)) NoteRefused(address);
                                   absl::Status result = FromMarkingServer(status, *call->context);
                                   if (result.ok()) result = CheckChecksum(&call->response);
                                   if (result.ok()) {
                                     CleanTexts(&call->response);
                                     done(std::move(call->response));
                                   } else {
                                     done(result);
                                   }
                                   Ended(std::move(call->context));
                                 });
}

template <typename Request, typename Response>
void GrpcStageClient::Command(const std::string& address, Request request, double deadline_seconds,
                              Method<Request, Response> method,
                              std::function<void(absl::StatusOr<Response>)> done) {
  if (WasRefused(address)) Reconnect(address);
  Start(address, std::move(request), deadline_seconds, method, std::move(done));
}

std::shared_ptr<const v1::Network> GrpcStageClient::MessageOf(
    const std::shared_ptr<const Network>& network) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (written_.lock() == network) return message_;
  }
  auto message = std::make_shared<const v1::Network>(ToProto(*network));
  std::lock_guard<std::mutex> lock(mutex_);
  written_ = network;
  message_ = message;
  return message;
}

void GrpcStageClient::Load(const std::string& address, const LoadCommand& command,
                           double deadline_seconds,
                           std::function<void(absl::StatusOr<LoadResult>)> done) {
  Command<v1::LoadCellRequest, v1::LoadCellResponse>(
      address, ToProto(command, *MessageOf(command.network)), deadline_seconds, &Async::LoadCell,
      Converted(std::move(done)));
}

void GrpcStageClient::Run(const std::string& address, const RunCommand& command,
                          double deadline_seconds,
                          std::function<void(absl::StatusOr<StepReport>)> done) {
  Command<v1::RunRequest, v1::RunResponse>(address, ToProto(command), deadline_seconds, &Async::Run,
                                           Converted(std::move(done)));
}

void GrpcStageClient::WriteShard(const std::string& address, const WriteShardCommand& command,
                                 double deadline_seconds,
                                 std::function<void(absl::StatusOr<ShardInfo>)> done) {
  Command<v1::WriteShardRequest, v1::WriteShardResponse>(
      address, ToProto(command), deadline_seconds, &Async::WriteShard, Converted(std::move(done)));
}

void GrpcStageClient::Profile(const std::string& address, const ProfileCommand& command,
                              double deadline_seconds,
                              std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) {
  Command<v1::ProfileModelRequest, v1::ProfileModelResponse>(address, ToProto(command),
                                                             deadline_seconds, &Async::ProfileModel,
                                                             Converted(std::move(done)));
}

void GrpcStageClient::FindSnapshots(
    const std::string& address, const std::string& job, const std::string& key,
    double deadline_seconds, std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) {
  v1::FindSnapshotsRequest request;
  request.set_job_id(job);
  request.set_key(key);
  Command<v1::FindSnapshotsRequest, v1::FindSnapshotsResponse>(
      address, std::move(request), deadline_seconds, &Async::FindSnapshots,
      Converted(std::move(done)));
}

void GrpcStageClient::Abort(const std::string& address, const Fence& fence,
                            const std::string& reason) {
  v1::AbortRequest request;
  *request.mutable_fence() = ToProto(fence);
  request.set_reason(reason);
  Command<v1::AbortRequest, v1::AbortResponse>(address, std::move(request), kSmallCallSeconds,
                                               &Async::Abort, [](const auto&) {});
}

void GrpcStageClient::Release(const std::string& address, const Fence& fence) {
  v1::ReleaseCellRequest request;
  *request.mutable_fence() = ToProto(fence);
  Command<v1::ReleaseCellRequest, v1::ReleaseCellResponse>(
      address, std::move(request), kSmallCallSeconds, &Async::ReleaseCell, [](const auto&) {});
}

void GrpcStageClient::GetStatus(const std::string& address, double deadline_seconds,
                                std::function<void(absl::StatusOr<v1::GetStatusResponse>)> done) {
  Start<v1::GetStatusRequest, v1::GetStatusResponse>(address, {}, deadline_seconds,
                                                     &Async::GetStatus, std::move(done));
}

void GrpcStageClient::GetTrace(
    const std::string& address, const v1::GetStageTraceRequest& request, double deadline_seconds,
    std::function<void(absl::StatusOr<v1::GetStageTraceResponse>)> done) {
  Start<v1::GetStageTraceRequest, v1::GetStageTraceResponse>(
      address, request, deadline_seconds, &Async::GetStageTrace, std::move(done));
}

void GrpcStageClient::GetLogs(const std::string& address, const v1::GetStageLogsRequest& request,
                              double deadline_seconds,
                              std::function<void(absl::StatusOr<v1::GetStageLogsResponse>)> done) {
  Start<v1::GetStageLogsRequest, v1::GetStageLogsResponse>(address, request, deadline_seconds,
                                                           &Async::GetStageLogs, std::move(done));
}

}  // namespace stagecoach
