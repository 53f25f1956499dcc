// RoleProcessor: checks every call before any of our code sees it. The caller, by its certificate
// or token (callers.h), must have a role for the method (method_roles.h). It must not begin too
// many calls (call_pace.h). For servers with TLS; without it there are no certificates to check.
// Ownership: shared with the server's credentials; borrows metrics and clock, which outlive the
//            server.
// Threads:   thread-safe. gRPC calls Process on any thread that polls. So it never waits and only
//            looks into a table. A stage has one gRPC thread and no other to hand a call to.
// Errors:    the caller gets those of CheckCall, UNAVAILABLE for too many. Refusals are counted,
//            and logged at most once in kSecondsBetweenRefusals, with the number that was not
//            logged.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_ROLE_PROCESSOR_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_ROLE_PROCESSOR_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include "base/threads/clock.h"
#include "services/common/grpc/access/call_pace.h"
#include "services/common/grpc/access/callers.h"
#include "services/common/grpc/rpc_metrics.h"
#include "services/common/observe/log_turn.h"

namespace stagecoach {

inline constexpr double kSecondsBetweenRefusals = 10;

class RoleProcessor final : public grpc::AuthMetadataProcessor {
 public:
  struct Options {
    bool any_certificate = false;      // see CheckCall
    const Callers* callers = nullptr;  // outlive the server; null: by certificates alone
    RpcMetrics* metrics = nullptr;     // null: nothing is counted
    const Clock* clock = SystemClock::Get();
    // Pace of a caller. A person's client begins a few calls a second. A stage, or a caller without
    // a role, begins one for each MiB of a snapshot, so many more. The coordinator has no limit: it
    // has power over the stage anyhow.
    CallPace::Limits pace = {.per_second = 200, .stock = 1000};
    CallPace::Limits stage_pace = {.per_second = 5000, .stock = 10000};
  };
  explicit RoleProcessor(const Options& options)
      : options_(options),
        callers_(options.callers != nullptr ? options.callers : &by_certificate_),
        pace_(options.pace, options.clock),
        stage_pace_(options.stage_pace, options.clock),
        turn_(kSecondsBetweenRefusals, options.clock) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& auth_metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed_auth_metadata,
                       OutputMetadata* response_metadata) override;

 private:
  const Options options_;
  const Callers by_certificate_;
  const Callers* const callers_;
  absl::Status CheckPace(const Caller& caller);

  CallPace pace_, stage_pace_;
  LogTurn turn_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ROLE_PROCESSOR_H_
