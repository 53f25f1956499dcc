// CallPace: limits the calls that a caller may begin in a second, with a stock for bursts (a token
// bucket). A begun call without an answer takes about 16 KiB in gRPC 1.51. That includes streams
// that were reset at once (CVE-2023-44487). The memory quota of gRPC does not count them: 106,000
// took 2 GB, and the process never released it.
// Ownership: borrows the clock.
// Threads:   thread-safe; a look into a table under one mutex.
// Errors:    none.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_CALL_PACE_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_CALL_PACE_H_

#include <cstddef>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/threads/clock.h"

namespace stagecoach {

class CallPace {
 public:
  struct Limits {
    double per_second = 0, stock = 0;
  };
  explicit CallPace(const Limits& limits, const Clock* clock = SystemClock::Get())
      : limits_(limits), clock_(clock) {}

  // Whether this caller may begin one more call; takes it.
  bool Take(const std::string& caller);
  // Whether Take would allow it now, without taking.
  bool Has(const std::string& caller) const;
  size_t known() const;  // callers in the table

 private:
  struct Bucket {
    double tokens = 0, seconds = 0;
  };
  double TokensAt(const Bucket& bucket, double seconds) const;
  void ForgetFullLocked(double seconds);

  const Limits limits_;
  const Clock* const clock_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_;
  size_t sweep_at_ = 1024;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_CALL_PACE_H_
