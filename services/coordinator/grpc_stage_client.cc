#include "services/coordinator/grpc_stage_client.h"

#include <chrono>
#include <utility>

#include "services/common/convert_control.h"
#include "services/common/convert_spec.h"
#include "services/common/grpc_channel.h"
#include "services/common/grpc_status.h"

namespace stagecoach {
namespace {

constexpr double kSmallCallSeconds = 5.0;

}  // namespace

template <typename Request, typename Response>
struct GrpcStageClient::Call {
  std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
  Request request;
  Response response;
};

GrpcStageClient::GrpcStageClient(std::shared_ptr<grpc::ChannelCredentials> credentials)
    : credentials_(std::move(credentials)) {}

GrpcStageClient::~GrpcStageClient() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (grpc::ClientContext* context : cancellable_) context->TryCancel();
  idle_.wait(lock, [this] { return calls_ == 0; });  // cancelled calls end at once
}

v1::StageService::Stub* GrpcStageClient::StubFor(const std::string& address) {
  std::lock_guard<std::mutex> lock(mutex_);
  Peer& peer = peers_[address];
  if (peer.stub == nullptr) {
    peer.channel = MakeControlChannel(address, credentials_);
    peer.stub = v1::StageService::NewStub(peer.channel);
  }
  return peer.stub.get();
}

void GrpcStageClient::Started(grpc::ClientContext* context) {
  std::lock_guard<std::mutex> lock(mutex_);
  cancellable_.insert(context);
  ++calls_;
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
std::shared_ptr<GrpcStageClient::Call<Request, Response>> GrpcStageClient::NewCall(
    Request request, double deadline_seconds) {
  auto call = std::make_shared<Call<Request, Response>>();
  call->request = std::move(request);
  call->context->set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::microseconds(static_cast<int64_t>(deadline_seconds * 1e6)));
  Started(call->context.get());
  return call;
}

void GrpcStageClient::Load(const std::string& address, const LoadCommand& command,
                           double deadline_seconds,
                           std::function<void(absl::StatusOr<LoadResult>)> done) {
  auto call =
      NewCall<v1::LoadCellRequest, v1::LoadCellResponse>(ToProto(command), deadline_seconds);
  StubFor(address)->async()->LoadCell(call->context.get(), &call->request, &call->response,
                                      [this, call, done](const grpc::Status& status) {
                                        if (status.ok()) {
                                          done(FromProto(call->response));
                                        } else {
                                          done(FromGrpc(status));
                                        }
                                        Ended(std::move(call->context));
                                      });
}

void GrpcStageClient::Run(const std::string& address, const RunCommand& command,
                          double deadline_seconds,
                          std::function<void(absl::StatusOr<StepReport>)> done) {
  auto call = NewCall<v1::RunRequest, v1::RunResponse>(ToProto(command), deadline_seconds);
  StubFor(address)->async()->Run(call->context.get(), &call->request, &call->response,
                                 [this, call, done](const grpc::Status& status) {
                                   if (status.ok()) {
                                     done(FromProto(call->response));
                                   } else {
                                     done(FromGrpc(status));
                                   }
                                   Ended(std::move(call->context));
                                 });
}

void GrpcStageClient::WriteShard(const std::string& address, const WriteShardCommand& command,
                                 double deadline_seconds,
                                 std::function<void(absl::StatusOr<ShardInfo>)> done) {
  auto call =
      NewCall<v1::WriteShardRequest, v1::WriteShardResponse>(ToProto(command), deadline_seconds);
  StubFor(address)->async()->WriteShard(call->context.get(), &call->request, &call->response,
                                        [this, call, done](const grpc::Status& status) {
                                          if (status.ok()) {
                                            done(FromProto(call->response));
                                          } else {
                                            done(FromGrpc(status));
                                          }
                                          Ended(std::move(call->context));
                                        });
}

void GrpcStageClient::Profile(const std::string& address, const JobSpec& spec,
                              double deadline_seconds,
                              std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) {
  v1::ProfileModelRequest request;
  *request.mutable_spec() = ToProto(spec);
  auto call = NewCall<v1::ProfileModelRequest, v1::ProfileModelResponse>(std::move(request),
                                                                         deadline_seconds);
  StubFor(address)->async()->ProfileModel(call->context.get(), &call->request, &call->response,
                                          [this, call, done](const grpc::Status& status) {
                                            if (status.ok()) {
                                              done(FromProto(call->response));
                                            } else {
                                              done(FromGrpc(status));
                                            }
                                            Ended(std::move(call->context));
                                          });
}

void GrpcStageClient::Abort(const std::string& address, const Fence& fence,
                            const std::string& reason) {
  v1::AbortRequest request;
  *request.mutable_fence() = ToProto(fence);
  request.set_reason(reason);
  auto call = NewCall<v1::AbortRequest, v1::AbortResponse>(std::move(request), kSmallCallSeconds);
  StubFor(address)->async()->Abort(
      call->context.get(), &call->request, &call->response,
      [this, call](const grpc::Status&) { Ended(std::move(call->context)); });
}

void GrpcStageClient::Release(const std::string& address, const Fence& fence) {
  v1::ReleaseCellRequest request;
  *request.mutable_fence() = ToProto(fence);
  auto call = NewCall<v1::ReleaseCellRequest, v1::ReleaseCellResponse>(std::move(request),
                                                                       kSmallCallSeconds);
  StubFor(address)->async()->ReleaseCell(
      call->context.get(), &call->request, &call->response,
      [this, call](const grpc::Status&) { Ended(std::move(call->context)); });
}

}  // namespace stagecoach
