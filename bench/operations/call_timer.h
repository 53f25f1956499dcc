// CallTimer: times one call of an operation on a back end. The call is queued again and again. The
// device's own clock times it, if there is one.
// Ownership: borrows the back end.
// Threads:   one at a time.
// Units and shapes: seconds of one run.
// Errors:    what Prepare, the allocator and Synchronize answer.
#ifndef STAGECOACH_BENCH_OPERATIONS_CALL_TIMER_H_
#define STAGECOACH_BENCH_OPERATIONS_CALL_TIMER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/precision.h"
#include "bench/operations/made_up_tensors.h"
#include "bench/operations/network_calls.h"

namespace stagecoach {

struct TimedCall {
  double median_seconds = 0, least_seconds = 0;  // over the rounds
  int64_t runs = 0;
  std::vector<std::string> ways;  // Backend::TakeWays of them
};

class CallTimer {
 public:
  // seconds: about, of the rounds of one call together.
  CallTimer(Backend& backend, double seconds)
      : backend_(backend), seconds_(seconds), make_(backend) {}

  // Returns run(i), the i-th run of a call, on operands that it owns. If one set of operands would
  // stay in the caches, several take turns: 256 MB of them, 16 sets at most.
  absl::StatusOr<std::function<void(int64_t)>> Runs(const NetworkCall& call, int64_t samples,
                                                    DType activation);
  absl::StatusOr<TimedCall> Time(const NetworkCall& call, int64_t samples, DType activation);
  // Of any work that is queued on the back end; run(i) is the i-th run.
  absl::StatusOr<TimedCall> Time(const std::function<void(int64_t)>& run);
  MadeUpTensors& tensors() { return make_; }

 private:
  struct Set;
  absl::StatusOr<double> Round(const std::function<void(int64_t)>& run, int64_t runs);

  Backend& backend_;
  const double seconds_;
  MadeUpTensors make_;
  int64_t next_ = 0;  // run
};

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_CALL_TIMER_H_
