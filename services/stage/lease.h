// Lease: keeps a stage registered with the coordinator. It renews at a third of the lease. If the
// coordinator does not know the stage (expired, replaced, coordinator restarted), it registers
// again. While there is no coordinator, it retries with back-off: a stage outlives its coordinator.
// It may be refused because another process holds its name, or because its certificate is not for
// it. Then it logs that once and asks again every second. After a refusal for the certificate each
// retry has a new connection.
// Every renewal carries the stage's totals and its progress; the answer tells of the job's
// progress. A draining stage whose coordinator is gone, or no longer knows it, has nobody to wait
// for: the lease ends the runtime's drain.
// Ownership: borrows its arguments.
// Threads:   one own thread, which also asks for the telemetry; every call has a deadline.
#ifndef STAGECOACH_SERVICES_STAGE_LEASE_H_
#define STAGECOACH_SERVICES_STAGE_LEASE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "base/threads/thread.h"
#include "services/common/process/last_death.h"
#include "stage/runtime/stage_runtime.h"
#include "stagecoach/v1/fleet.grpc.pb.h"

namespace stagecoach {

class Lease {
 public:
  struct Parts {
    std::function<std::shared_ptr<grpc::Channel>()> dial;  // the coordinator, anew
    v1::Stage stage;
    StageRuntime* runtime = nullptr;
    std::function<v1::StageTelemetry()> telemetry;
    LastDeath* last_death =
        nullptr;  // told with the first registration that is granted; null: nothing to tell
    // Adds to an error what TLS has to do with it (services/common/tls/tls_check.h).
    std::function<absl::Status(const absl::Status&)> explain;
  };
  explicit Lease(const Parts& parts);
  ~Lease();  // Stop
  // From now on, and at once, the coordinator hears that the stage is draining.
  void StartDraining();
  void Stop();
  bool registered() const { return registered_; }

 private:
  void Loop();
  // Seconds until the next call; lease_seconds_ is set by an answer.
  double RegisterOnce();
  double RenewOnce();
  void Redial();
  void EndDrainIfOrphaned(const grpc::Status& answer);
  void EndDrain(const char* why);
  bool WaitStopped(double seconds);  // or told to hurry
  bool draining() const;

  const Parts parts_;
  std::unique_ptr<v1::FleetService::Stub> stub_;  // the thread's
  double lease_seconds_ = 1.5;
  double backoff_seconds_ = 0.1;
  int unavailable_ = 0;    // answers since the last good one; the thread's
  bool orphaned_ = false;  // told already; the thread's
  std::string refusal_;    // told already: the name is another's; the thread's
  std::atomic<bool> registered_{false};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stopped_ = false;
  bool draining_ = false;
  bool hurry_ = false;  // the next call is due now
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_LEASE_H_
