#include "services/common/grpc/grpc_server.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>
#include <sys/socket.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/grpc/access/callers.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/health_service.h"
#include "services/common/grpc/role_processor.h"
#include "services/common/http2/frame_watch.h"
#include "services/common/http2/read_watch.h"
#include "services/common/listener/connection_table.h"
#include "services/common/listener/grpc_listener.h"
#include "services/common/listener/self_check.h"
#include "services/common/listener/self_dial.h"
#include "services/common/tls/tls_identity.h"

namespace stagecoach {

struct GrpcServer::State {
  GrpcServerOptions options;
  std::vector<NamedService> services;
  RpcMetrics* metrics;
  HealthService health;  // where gRPC's own is not wanted
  std::unique_ptr<TlsIdentity> own_identity;
  const TlsIdentity* identity = nullptr;  // null: no TLS
  std::unique_ptr<GrpcListener> listener;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<SelfCheck> self_check;  // null: nobody dials
  bool down = false;                      // after Shutdown

  bool on_queue() const { return options.take_queue != nullptr; }
  void AddHealth(grpc::ServerBuilder& builder);
  void SetHealth(const std::string& service, bool serving);
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials();
  MayAuthorize CheckOfTokens(int descriptor) const;
  void StartListening();
};

// gRPC's own health service is a callback service, whose threads poll. Synchronous services do not
// where there is a queue that is polled.
void GrpcServer::State::AddHealth(grpc::ServerBuilder& builder) {
  if (!on_queue()) return;
  builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  builder.RegisterService(&health);
}

void GrpcServer::State::SetHealth(const std::string& service, bool serving) {
  if (on_queue()) {
    health.Set(service, serving);
  } else {
    server->GetHealthCheckService()->SetServingStatus(service, serving);
  }
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> GrpcServer::State::MakeCredentials() {
  if (!options.tls.use_ssl) return grpc::InsecureServerCredentials();
  identity = options.identity;
  if (identity == nullptr) {
    ASSIGN_OR_RETURN(own_identity, TlsIdentity::Load(options.tls));
    identity = own_identity.get();
  }
  const bool tokens = options.callers != nullptr && options.callers->takes_tokens();
  auto credentials = identity->MakeServerCredentials(tokens);
  RoleProcessor::Options roles = {.any_certificate = options.tls.any_certificate_i_know,
                                  .callers = options.callers,
                                  .metrics = metrics};
  if (options.pace.has_value()) roles.pace = roles.stage_pace = *options.pace;
  credentials->SetAuthMetadataProcessor(std::make_shared<RoleProcessor>(roles));
  return credentials;
}

MayAuthorize GrpcServer::State::CheckOfTokens(int descriptor) const {
  if (options.callers == nullptr) return {};
  sockaddr_storage from{};
  socklen_t length = sizeof(from);
  // Of one that has left there is nothing to check.
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&from), &length) != 0) return {};
  return options.callers->CheckOfConnection(PeerKey(from));
}

void GrpcServer::State::StartListening() {
  listener->Start([this](int descriptor, int listening) {
    if (identity == nullptr) WatchReads(descriptor);
    const Arrival arrival(descriptor, CheckOfTokens(descriptor));
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listening;
    connection.fd = descriptor;
    acceptor->HandleNewConnection(&connection);
  });
  if (!options.on_unreachable) return;
  const auto dial = [this] {
    std::optional<TlsPems> pems;
    if (identity != nullptr) pems = identity->pems();
    return SelfDial(listener->reach(), pems,
                    [this](const sockaddr_storage& from) { listener->Expect(from); });
  };
  self_check = std::make_unique<SelfCheck>(
      SelfCheck::Options{.dial = dial,
                         .busy = [this] { return listener->BusyWithOthers(); },
                         .on_dead = options.on_unreachable});
}

namespace {

constexpr int kIdleMs = 60000;

void AddArguments(const GrpcServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, FrameWatch::kMostFieldBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, options.handshake_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options.keepalive_time_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.keepalive_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             options.min_ping_interval_ms);
  builder.AddChannelArgument(GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 0);
  if (options.callers != nullptr && options.callers->takes_tokens()) {
    // Whoever shows no certificate gets through the handshake, and says who it is with a call only.
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  }
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
  StartReadWatch();
  ASSIGN_OR_RETURN(
      ListenSockets sockets,
      ListenSockets::Open(state_->options.listen, state_->options.keepalive_timeout_ms));
  state_->listener =
      std::make_unique<GrpcListener>(std::move(sockets), state_->options.connections);
  grpc::ServerBuilder builder;
  AddArguments(state_->options, builder);
  ASSIGN_OR_RETURN(auto credentials, state_->MakeCredentials());
  state_->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  for (const NamedService& service : state_->services) builder.RegisterService(service.service);
  state_->AddHealth(builder);
  if (state_->on_queue()) state_->options.take_queue(builder.AddCompletionQueue());
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
  if (state_->metrics != nullptr) creators.push_back(state_->metrics->MakeInterceptorFactory());
  builder.experimental().SetInterceptorCreators(std::move(creators));
  state_->server = builder.BuildAndStart();
  if (state_->server == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve gRPC on ", state_->options.listen, ": gRPC does not start"));
  }
  state_->StartListening();
  state_->SetHealth("liveness", true);
  SetServing(false);
  return absl::OkStatus();
}

int GrpcServer::port() const { return state_->listener != nullptr ? state_->listener->port() : 0; }

void GrpcServer::WriteMetrics(MetricWriter& writer) const {
  state_->listener->Write(writer);
  WriteReadFaults(writer);
}

bool GrpcServer::reachable() const {
  return state_->self_check == nullptr || state_->self_check->well();
}

void GrpcServer::SetServing(bool serving) {
  if (state_->server == nullptr || state_->down) return;
  if (state_->self_check != nullptr) {
    if (serving) {
      state_->self_check->Start();
    } else {
      state_->self_check->Stop();
    }
  }
  state_->SetHealth("", serving);
  state_->SetHealth("readiness", serving);
  for (const NamedService& service : state_->services) state_->SetHealth(service.name, serving);
}

void GrpcServer::Shutdown(double drain_seconds) {
  if (state_->server == nullptr || std::exchange(state_->down, true)) return;
  if (state_->self_check != nullptr) state_->self_check->Stop();
  state_->listener->Stop();
  state_->health.Shutdown();
  state_->server->Shutdown(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<std::chrono::system_clock::duration>(
                               std::chrono::duration<double>(drain_seconds)));
  state_->server->Wait();
  // It stays until the destructor: calls that never came still refer to it from a queue of its own.
}

}  // namespace stagecoach
