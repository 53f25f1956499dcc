#include "services/coordinator/stages/grpc_stage_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/convert/clean_texts.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/grpc/own_error.h"
#include "services/common/store/store_names.h"

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

GrpcStageClient::GrpcStageClient(Credentials credentials, const ObjectGrants* grants, bool unproven)
    : credentials_(std::move(credentials)), grants_(grants), data_grants_(grants, unproven) {}

GrpcStageClient::~GrpcStageClient() {
  std::unique_lock<std::mutex> lock(mutex_);
  closing_ = true;  // an answer may ask the next question
  for (grpc::ClientContext* context : cancellable_) context->TryCancel();
  idle_.wait(lock, [this] { return calls_ == 0; });  // cancelled calls end at once
}

std::string GrpcStageClient::GrantFor(const std::string& folder, ObjectGrants::Use use) const {
  if (grants_ == nullptr || !IsStoreName(folder)) return "";
  return grants_->Make(ObjectOf(folder), use);
}

std::shared_ptr<GrpcStageClient::Peer> GrpcStageClient::PeerFor(const StagePeer& stage) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Peer>& peer = peers_[stage];
  if (peer == nullptr) {
    peer = std::make_shared<Peer>();
    peer->channel = MakeControlChannel(stage.address, credentials_(stage.name));
    peer->stub = v1::StageService::NewStub(peer->channel);
  }
  return peer;
}

void GrpcStageClient::NoteRefused(const StagePeer& stage) {
  std::lock_guard<std::mutex> lock(mutex_);
  refused_.insert(stage);
}

bool GrpcStageClient::WasRefused(const StagePeer& stage) {
  std::lock_guard<std::mutex> lock(mutex_);
  return refused_.contains(stage);
}

void GrpcStageClient::Reconnect(const StagePeer& stage) {
  std::lock_guard<std::mutex> lock(mutex_);
  refused_.erase(stage);
  if (const auto found = peers_.find(stage); found != peers_.end()) {
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
void GrpcStageClient::Start(const StagePeer& stage, Request request, double deadline_seconds,
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
  const std::shared_ptr<Peer> peer = PeerFor(stage);
  (peer->stub->async()->*method)(call->context.get(), &call->request, &call->response,
                                 [this, call, stage, done](const grpc::Status& status) {
                                   if (RefusesCaller(status)) NoteRefused(stage);
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
void GrpcStageClient::Command(const StagePeer& stage, Request request, double deadline_seconds,
                              Method<Request, Response> method,
                              std::function<void(absl::StatusOr<Response>)> done) {
  if (WasRefused(stage)) Reconnect(stage);
  Start(stage, std::move(request), deadline_seconds, method, std::move(done));
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

void GrpcStageClient::Load(const StagePeer& stage, const LoadCommand& command,
                           double deadline_seconds,
                           std::function<void(absl::StatusOr<LoadResult>)> done) {
  v1::LoadCellRequest request = ToProto(command, *MessageOf(command.network));
  request.set_stage_name(stage.name);
  request.set_checkpoint_grant(GrantFor(command.checkpoint_folder, ObjectGrants::Use::kRead));
  request.set_probe_grant(GrantFor(command.probe_folder, ObjectGrants::Use::kWrite));
  data_grants_.ForLoad(stage, command.fence.job, command.spec, request.mutable_data_grants());
  Command<v1::LoadCellRequest, v1::LoadCellResponse>(stage, std::move(request), deadline_seconds,
                                                     &Async::LoadCell, Converted(std::move(done)));
}

void GrpcStageClient::Run(const StagePeer& stage, const RunCommand& command,
                          double deadline_seconds,
                          std::function<void(absl::StatusOr<StepReport>)> done) {
  v1::RunRequest request = ToProto(command);
  data_grants_.ForRun(stage, command.fence.job, request.mutable_data_grants());
  Command<v1::RunRequest, v1::RunResponse>(stage, std::move(request), deadline_seconds, &Async::Run,
                                           Converted(std::move(done)));
}

void GrpcStageClient::WriteShard(const StagePeer& stage, const WriteShardCommand& command,
                                 double deadline_seconds,
                                 std::function<void(absl::StatusOr<ShardInfo>)> done) {
  v1::WriteShardRequest request = ToProto(command);
  request.set_grant(GrantFor(command.folder, ObjectGrants::Use::kWrite));
  Command<v1::WriteShardRequest, v1::WriteShardResponse>(
      stage, std::move(request), deadline_seconds, &Async::WriteShard, Converted(std::move(done)));
}

void GrpcStageClient::Profile(const StagePeer& stage, const ProfileCommand& command,
                              double deadline_seconds,
                              std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) {
  v1::ProfileModelRequest request = ToProto(command);
  request.set_stage_name(stage.name);
  Command<v1::ProfileModelRequest, v1::ProfileModelResponse>(stage, std::move(request),
                                                             deadline_seconds, &Async::ProfileModel,
                                                             Converted(std::move(done)));
}

void GrpcStageClient::FindSnapshots(
    const StagePeer& stage, const std::string& job, const std::string& key, double deadline_seconds,
    std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) {
  v1::FindSnapshotsRequest request;
  request.set_job_id(job);
  request.set_key(key);
  Command<v1::FindSnapshotsRequest, v1::FindSnapshotsResponse>(
      stage, std::move(request), deadline_seconds, &Async::FindSnapshots,
      Converted(std::move(done)));
}

void GrpcStageClient::Abort(const StagePeer& stage, const Fence& fence, const std::string& reason) {
  v1::AbortRequest request;
  *request.mutable_fence() = ToProto(fence);
  request.set_reason(reason);
  Command<v1::AbortRequest, v1::AbortResponse>(stage, std::move(request), kSmallCallSeconds,
                                               &Async::Abort, [](const auto&) {});
}

void GrpcStageClient::Release(const StagePeer& stage, const Fence& fence) {
  data_grants_.Forget(stage);
  v1::ReleaseCellRequest request;
  *request.mutable_fence() = ToProto(fence);
  Command<v1::ReleaseCellRequest, v1::ReleaseCellResponse>(
      stage, std::move(request), kSmallCallSeconds, &Async::ReleaseCell, [](const auto&) {});
}

void GrpcStageClient::GetStatus(const StagePeer& stage, double deadline_seconds,
                                std::function<void(absl::StatusOr<v1::GetStatusResponse>)> done) {
  Start<v1::GetStatusRequest, v1::GetStatusResponse>(stage, {}, deadline_seconds, &Async::GetStatus,
                                                     std::move(done));
}

void GrpcStageClient::GetTrace(
    const StagePeer& stage, const v1::GetStageTraceRequest& request, double deadline_seconds,
    std::function<void(absl::StatusOr<v1::GetStageTraceResponse>)> done) {
  Start<v1::GetStageTraceRequest, v1::GetStageTraceResponse>(
      stage, request, deadline_seconds, &Async::GetStageTrace, std::move(done));
}

void GrpcStageClient::GetLogs(const StagePeer& stage, const v1::GetStageLogsRequest& request,
                              double deadline_seconds,
                              std::function<void(absl::StatusOr<v1::GetStageLogsResponse>)> done) {
  Start<v1::GetStageLogsRequest, v1::GetStageLogsResponse>(stage, request, deadline_seconds,
                                                           &Async::GetStageLogs, std::move(done));
}

}  // namespace stagecoach
