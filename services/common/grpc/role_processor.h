// RoleProcessor: asks of every call, before any of our code sees it, whether the caller's certificate
// may make it (method_roles.h). For servers with TLS; without it there are no certificates to ask.
// Ownership: shared with the server's credentials; borrows metrics and clock, which outlive the server.
// Threads:   thread-safe: gRPC calls Process on whichever thread polls, so it never waits and does no
//            more than a look into a table. A stage's one thread of gRPC has no other to hand it to.
// Errors:    the caller gets those of CheckCall. Refusals are counted, and logged at most once in
//            kSecondsBetweenRefusals, with how many were not.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_ROLE_PROCESSOR_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_ROLE_PROCESSOR_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "services/common/grpc/rpc_metrics.h"

namespace stagecoach {

inline constexpr double kSecondsBetweenRefusals = 10;

class RoleProcessor final : public grpc::AuthMetadataProcessor {
 public:
  struct Options {
    bool any_certificate = false;   // see CheckCall
    RpcMetrics* metrics = nullptr;  // null: nothing is counted
    const Clock* clock = SystemClock::Get();
  };
  explicit RoleProcessor(const Options& options) : options_(options) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& auth_metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed_auth_metadata,
                       OutputMetadata* response_metadata) override;

  // How many refusals went by in silence since the last line; none: this one does as well.
  std::optional<uint64_t> TakeTurnToLog();

 private:
  const Options options_;
  std::mutex mutex_;  // guards what follows
  std::optional<int64_t> last_line_nanos_;
  uint64_t silent_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ROLE_PROCESSOR_H_
