// Lease: keeps a stage registered with the coordinator. Renews at a third of the lease, registers
// again when the coordinator does not know it (expired, replaced, coordinator restarted), and goes
// on trying with back-off while there is no coordinator: a stage outlives its coordinator.
// Ownership: borrows the runtime.  Threads: one own thread; every call has a deadline.
#ifndef STAGECOACH_SERVICES_STAGE_LEASE_H_
#define STAGECOACH_SERVICES_STAGE_LEASE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "base/thread.h"
#include "stage/stage_runtime.h"
#include "stagecoach/v1/fleet.grpc.pb.h"

namespace stagecoach {

class Lease {
 public:
  // explain: adds to an error what TLS has to do with it (services/common/tls_check.h).
  Lease(std::shared_ptr<grpc::Channel> channel, const v1::Stage& stage, StageRuntime* runtime,
        std::function<absl::Status(const absl::Status&)> explain);
  ~Lease();  // Stop
  void Stop();
  bool registered() const { return registered_; }

 private:
  void Loop();
  // Seconds until the next call; lease_seconds_ is set by an answer.
  double RegisterOnce();
  double RenewOnce();
  bool WaitStopped(double seconds);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::FleetService::Stub> stub_;
  const v1::Stage stage_;
  StageRuntime* const runtime_;
  const std::function<absl::Status(const absl::Status&)> explain_;
  double lease_seconds_ = 1.5;
  double backoff_seconds_ = 0.1;
  std::atomic<bool> registered_{false};

  std::mutex mutex_;  // guards stopped_
  std::condition_variable changed_;
  bool stopped_ = false;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_LEASE_H_
