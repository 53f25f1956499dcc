// BucketTransfer: a host's HTTP requests to a bucket in memory, and the pauses between them, which
// take no time of the world: only this host's clock for the store goes on.
// Ownership: borrows all of Parts.
// Threads:   one.
// Errors:    as HttpTransfer; messages have "injected" where a fault was asked for.
#ifndef STAGECOACH_TESTS_SIMULATION_STORE_BUCKET_TRANSFER_H_
#define STAGECOACH_TESTS_SIMULATION_STORE_BUCKET_TRANSFER_H_

#include <functional>
#include <string>

#include "base/threads/clock.h"
#include "services/common/s3/fake_s3_testing.h"
#include "services/common/s3/http_transfer.h"
#include "tests/simulation/store/call_faults.h"

namespace stagecoach {

// The host's clock, ahead of it by what was waited for the store.
class StoreClock final : public Clock {
 public:
  explicit StoreClock(const Clock* host) : host_(*host) {}
  int64_t MonotonicNanos() const override { return host_.MonotonicNanos() + waited_nanos_; }
  int64_t UnixNanos() const override { return host_.UnixNanos(); }
  void Wait(double seconds) { waited_nanos_ += static_cast<int64_t>(seconds * 1e9); }

 private:
  const Clock& host_;
  int64_t waited_nanos_ = 0;
};

class BucketTransfer final : public HttpTransfer {
 public:
  struct Parts {
    FakeS3* bucket = nullptr;
    CallFaults* faults = nullptr;
    StoreClock* clock = nullptr;
    const bool* full = nullptr;             // the bucket takes no more
    std::function<void()> between = [] {};  // called before each request
  };
  explicit BucketTransfer(Parts parts) : parts_(std::move(parts)) {}

  absl::StatusOr<HttpAnswer> Do(const HttpCall& call, size_t* received) override;
  bool WaitClosed(double seconds) override {
    parts_.clock->Wait(seconds);
    return dead_;
  }
  void Live() { dead_ = false; }

 private:
  const Parts parts_;
  bool dead_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_STORE_BUCKET_TRANSFER_H_
