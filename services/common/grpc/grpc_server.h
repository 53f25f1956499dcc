// GrpcServer: a gRPC server set up the same way in every program. It has limits, keepalive, health
// service, reflection and RPC counters. With TLS it checks who may call what (role_processor.h).
// It accepts connections itself (grpc_listener.h) and hands them to gRPC.
// Ownership: owns the grpc::Server; borrows services and metrics, which outlive it.
// Threads:   owner thread, except reachable.
// Errors:    Start: UNAVAILABLE if the address cannot be bound (ports are never shared). Shutdown:
//            refuse (SetServing(false)), drain until a deadline, then cancel what is left.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_GRPC_SERVER_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_GRPC_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/grpc/call_pace.h"
#include "services/common/grpc/rpc_metrics.h"
#include "services/common/observe/metrics.h"
#include "services/common/process/server_flags.h"

namespace grpc {
class ServerCompletionQueue;
class Service;
}  // namespace grpc

namespace stagecoach {

class Callers;
class TlsIdentity;

struct GrpcServerOptions {
  std::string listen;
  TlsFlags tls;
  // Of `tls`, outlives the server; null: the server loads its own.
  const TlsIdentity* identity = nullptr;
  // Outlive the server; null: by certificates alone. Where they take tokens, a connection needs no
  // certificate.
  const Callers* callers = nullptr;
  ConnectionLimits connections;
  std::optional<CallPace::Limits> pace;  // of each caller, with TLS; none: RoleProcessor's own
  int max_receive_bytes = 1 << 20;
  int max_concurrent_streams = 100;  // per connection
  // Of a connection that says nothing; gRPC's own is two minutes, in which 1,000 of them hold every
  // descriptor.
  int handshake_timeout_ms = 10000;
  int keepalive_time_ms = 30000;
  int keepalive_timeout_ms = 10000;
  int min_ping_interval_ms = 500;  // not above the clients' keepalive time
  size_t memory_quota_bytes = 256 << 20;
  int max_threads = 16;
  bool reflection = true;
  // While it serves, the process dials its own port (self_check.h). Called when that has failed for
  // so long that the process had better end; must not block. Empty: nobody dials.
  std::function<void()> on_unreachable;
  // For asynchronous services: called in Start with the queue that they will be served on, before
  // there is a server. Whoever takes it polls it at once and all the time, and shuts it down and
  // empties it after Shutdown, before this object goes. Nothing else in the process polls then for
  // this server, health and reflection included.
  std::function<void(std::unique_ptr<grpc::ServerCompletionQueue>)> take_queue;
};

class GrpcServer {
 public:
  // services by name ("stagecoach.v1.JobService"), for health.
  struct NamedService {
    std::string name;
    grpc::Service* service;
  };
  GrpcServer(const GrpcServerOptions& options, std::vector<NamedService> services,
             RpcMetrics* metrics);
  ~GrpcServer();
  absl::Status Start();
  int port() const;
  bool reachable() const;  // by what the process hears when it dials its own port
  void WriteMetrics(MetricWriter& writer) const;  // of its connections; between Start and Shutdown
  // "" (whole server), every service, "readiness". "liveness" is SERVING from Start to Shutdown.
  // The process dials itself between true and false.
  void SetServing(bool serving);
  void Shutdown(double drain_seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_GRPC_SERVER_H_
