#include "services/common/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "services/common/grpc_channel.h"

namespace stagecoach {

struct GrpcServer::State {
  GrpcServerOptions options;
  std::vector<NamedService> services;
  RpcMetrics* metrics;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

namespace {

constexpr int kMetadataBytes = 8 << 10;

void AddArguments(const GrpcServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options.keepalive_time_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.keepalive_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             options.min_ping_interval_ms);
  builder.AddChannelArgument(GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 0);
  grpc::ResourceQuota quota("stagecoach");
  quota.Resize(options.memory_quota_bytes);
  quota.SetMaxThreads(options.max_threads);
  builder.SetResourceQuota(quota);
}

}  // namespace

GrpcServer::GrpcServer(const GrpcServerOptions& options, std::vector<NamedService> services,
                       RpcMetrics* metrics)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->services = std::move(services);
  state_->metrics = metrics;
}

GrpcServer::~GrpcServer() { Shutdown(0); }

absl::Status GrpcServer::Start() {
  static std::once_flag plugins;
  std::call_once(plugins, [reflection = state_->options.reflection] {
    grpc::EnableDefaultHealthCheckService(true);
    if (reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
  grpc::ServerBuilder builder;
  AddArguments(state_->options, builder);
  ASSIGN_OR_RETURN(auto credentials, MakeServerCredentials(state_->options.tls));
  builder.AddListeningPort(state_->options.listen, credentials, &state_->port);
  for (const NamedService& service : state_->services) builder.RegisterService(service.service);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
  if (state_->metrics != nullptr) creators.push_back(state_->metrics->MakeInterceptorFactory());
  builder.experimental().SetInterceptorCreators(std::move(creators));
  state_->server = builder.BuildAndStart();
  if (state_->server == nullptr || state_->port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve gRPC on ", state_->options.listen, ": is the port taken?"));
  }
  state_->server->GetHealthCheckService()->SetServingStatus("liveness", true);
  SetServing(false);
  return absl::OkStatus();
}

int GrpcServer::port() const { return state_->port; }

void GrpcServer::SetServing(bool serving) {
  if (state_->server == nullptr) return;
  grpc::HealthCheckServiceInterface* health = state_->server->GetHealthCheckService();
  health->SetServingStatus("", serving);
  health->SetServingStatus("readiness", serving);
  for (const NamedService& service : state_->services) {
    health->SetServingStatus(service.name, serving);
  }
}

void GrpcServer::Shutdown(double drain_seconds) {
  if (state_->server == nullptr) return;
  state_->server->Shutdown(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<std::chrono::system_clock::duration>(
                               std::chrono::duration<double>(drain_seconds)));
  state_->server->Wait();
  state_->server.reset();
}

}  // namespace stagecoach
