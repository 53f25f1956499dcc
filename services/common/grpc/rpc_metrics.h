// RpcMetrics: an interceptor that counts and times the RPCs of a server. It also counts calls that
// were refused by the caller's certificate, which no interceptor sees (role_processor.h).
// Ownership: shared by the server's interceptors; outlives the server.
// Threads:   thread-safe. The link's streams are left out: they last for a whole placement, and the
//            interceptor would add work to every frame.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_RPC_METRICS_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_RPC_METRICS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "services/common/observe/metrics.h"

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}  // namespace grpc::experimental

namespace stagecoach {

class RpcMetrics {
 public:
  // Exports zeros for the methods of these services from the start ("stagecoach.v1.JobService").
  explicit RpcMetrics(const std::vector<std::string>& services);
  void Handled(const std::string& service, const std::string& method, int grpc_code,
               double seconds);
  void Refused(const std::string& service, const std::string& method, const std::string& role);
  void Write(MetricWriter& writer) const;
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeInterceptorFactory();

 private:
  using Method = std::pair<std::string, std::string>;
  struct Entry {
    std::map<int, uint64_t> handled;  // by code
    std::unique_ptr<Histogram> seconds;
  };

  mutable std::mutex mutex_;  // guards the maps' shapes; entries stay once made
  std::map<Method, Entry> methods_;
  std::map<std::pair<Method, std::string>, uint64_t> refused_;  // by method and role
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_RPC_METRICS_H_
