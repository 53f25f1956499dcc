// ProductTuner: makes a table of matrix algorithms (stage/backends/cuda/matmul/matmul_table.h). It
// times the algorithms that the matrix library offers for the linear calls of networks, on the GPU
// and in the way that a training step runs them.
// Ownership: borrows the back end, which must be a GPU's.
// Threads:   one at a time.
// Units and shapes: seconds.
// Errors:    INVALID_ARGUMENT for a device without a choice of algorithms. Otherwise the errors of
//            timing a call. After RESOURCE_EXHAUSTED the tuner can still be used for other calls.
#ifndef STAGECOACH_BENCH_OPERATIONS_TUNE_PRODUCTS_H_
#define STAGECOACH_BENCH_OPERATIONS_TUNE_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/operations/call_timer.h"
#include "bench/operations/network_calls.h"
#include "stage/backends/cuda/matmul/matmul_table.h"
#include "stage/backends/cuda/matmul/matmul_tuning.h"

namespace stagecoach {

// OK if the device has a choice of matrix algorithms, so that --matmul-table-out has a meaning.
absl::Status CheckTunable(const std::string& device);

// True for `linear` and `linear_*`: a matrix product, with or without fused work.
bool IsLinear(const NetworkCall& call);

class ProductTuner {
 public:
  // seconds: approximate time for all rounds of one algorithm. Each algorithm gets three warm-up
  // runs, then five rounds on the device's clock. The result is their median.
  static absl::StatusOr<ProductTuner> Make(Backend& backend, double seconds);

  // Adds the call's products to the table. Returns those that were not in it before.
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
