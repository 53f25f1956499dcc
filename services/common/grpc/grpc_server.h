// GrpcServer: a gRPC server set up the same way in every program. It has limits, keepalive, health
// service, reflection and RPC counters. With TLS it checks who may call what (role_processor.h).
// It accepts connections itself (grpc_listener.h) and hands them to gRPC.
// Ownership: owns the grpc::Server; borrows services and metrics, which outlive it.
// Threads:   owner thread; reachable and WriteMetrics from any thread.
// Errors:    Start: UNAVAILABLE if the address cannot be bound (ports are never shared).
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_GRPC_SERVER_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_GRPC_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/grpc/access/call_pace.h"
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
  // The identity for `tls`; outlives the server. Null: the server loads its own.
  const TlsIdentity* identity = nullptr;
  // Knows the callers; outlives the server. Null: certificates alone tell who calls. If it takes
  // tokens, a connection needs no certificate.
  const Callers* callers = nullptr;
  ConnectionLimits connections;
  std::optional<CallPace::Limits> pace;  // of each caller, with TLS; none: RoleProcessor's own
  int max_receive_bytes = 1 << 20;
  int max_concurrent_streams = 100;  // per connection
  // Time for a connection to finish its handshake. gRPC's default is two minutes; 1,000 silent
  // connections would hold every file descriptor for that long.
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
  // there is a server. The receiver polls the queue at once and all the time. It shuts the queue
  // down and empties it after Shutdown, before this object goes. Nothing else in the process then
  // polls for this server, health and reflection included.
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
  bool reachable() const;  // false: the server does not answer the process's own dials
  // Metrics of its connections. Call between Start and Shutdown.
  void WriteMetrics(MetricWriter& writer) const;
  // Sets the health of "" (whole server), every service and "readiness". "liveness" is SERVING from
  // Start to Shutdown. The self-check runs while serving.
  void SetServing(bool serving);
  // Refuses new calls, waits up to drain_seconds, then cancels the rest.
  void Shutdown(double drain_seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_GRPC_SERVER_H_
