// ProductTuner: makes a table of matrix algorithms (stage/backends/cuda/matmul_table.h). It times
// the algorithms that the matrix library offers for the linear calls of networks, on the card and
// as a step runs them.
// Ownership: borrows the back end, which must be a card's.
// Threads:   one at a time.
// Units and shapes: seconds.
// Errors:    INVALID_ARGUMENT for a device without such a choice. Otherwise the errors of timing a
//            call. After RESOURCE_EXHAUSTED the tuner is good for other calls.
#ifndef STAGECOACH_BENCH_OPERATIONS_TUNE_PRODUCTS_H_
#define STAGECOACH_BENCH_OPERATIONS_TUNE_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/operations/call_timer.h"
#include "bench/operations/network_calls.h"
#include "stage/backends/cuda/matmul_table.h"
#include "stage/backends/cuda/matmul_tuning.h"

namespace stagecoach {

// OK if the device has a choice of matrix algorithms, so that --matmul-table-out has a meaning.
absl::Status CheckTunable(const std::string& device);

// Those of the calls that are matrix products with what belongs to them.
bool IsLinear(const NetworkCall& call);

class ProductTuner {
 public:
  // seconds: about, of the rounds with one offer. Each offer has three runs that are not counted.
  // Then come five rounds on the device's clock, and their median counts.
  static absl::StatusOr<ProductTuner> Make(Backend& backend, double seconds);

  // Adds to the table. Products that it has already are not returned.
  absl::StatusOr<std::vector<cuda::TunedProduct>> Tune(const NetworkCall& call, int64_t samples,
                                                       DType activation);
  const cuda::MatmulTable& table() const { return table_; }

 private:
  ProductTuner(Backend& backend, cuda::MatmulTrials& trials, double seconds);

  cuda::MatmulTrials* trials_;
  std::unique_ptr<CallTimer> timer_;
  cuda::MatmulTable table_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_TUNE_PRODUCTS_H_
