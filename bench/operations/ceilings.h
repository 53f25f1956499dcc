// What a device really reaches, through the back end that trains: the ceilings that shares are of.
// Ownership: borrows the back end. Threads: one at a time. Errors: of the device.
#ifndef STAGECOACH_BENCH_OPERATIONS_CEILINGS_H_
#define STAGECOACH_BENCH_OPERATIONS_CEILINGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/numbers/precision.h"
#include "bench/operations/call_timer.h"

namespace stagecoach {

struct Rates {
  double median = 0, best = 0;
  int64_t runs = 0;
};

// FLOP/s of the square product y = x w^T of uniform random values (a card is faster on zeros).
absl::StatusOr<Rates> ProductRates(Backend& backend, Precision precision, int64_t side,
                                   double seconds);
// Bytes/s, read and written, of copies of so many bytes of float32.
absl::StatusOr<Rates> CopyRates(Backend& backend, int64_t bytes, double seconds);

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_CEILINGS_H_
