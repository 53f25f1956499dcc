// HealthService: grpc.health.v1 on the threads of synchronous calls, which do not poll where a
// completion queue does (stage/link/grpc/rpc_loop.h says why that matters).
// Ownership: outlives the server it is registered with.
// Threads:   thread-safe.
// Errors:    Check: NOT_FOUND for a name that was never set. Watch: RESOURCE_EXHAUSTED beyond
//            kMaxWatchers, as each holds a thread; UNAVAILABLE once shut down.
// See: https://github.com/grpc/grpc/blob/master/doc/health-checking.md
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_HEALTH_SERVICE_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_HEALTH_SERVICE_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"

namespace stagecoach {

class HealthService final : public grpc::health::v1::Health::Service {
 public:
  static constexpr int kMaxWatchers = 4;

  void Set(const std::string& service, bool serving);
  void Shutdown();  // nothing serves any more; ends all watches

  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;
  grpc::Status Watch(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) override;

 private:
  using Status = grpc::health::v1::HealthCheckResponse;

  Status::ServingStatus FindLocked(const std::string& service) const;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, bool> serving_;
  int watchers_ = 0;
  bool shut_down_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_HEALTH_SERVICE_H_
