// The device that a benchmark is told to use: cpu, cuda or cuda:N.
// Errors: INVALID_ARGUMENT for another name, what opening a card answers.
#ifndef STAGECOACH_BENCH_OPERATIONS_BENCH_DEVICE_H_
#define STAGECOACH_BENCH_OPERATIONS_BENCH_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/device_name.h"
#include "base/errors/status.h"
#include "stage/backends/backend.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach {

// options: what the device uses of them.
inline absl::StatusOr<std::unique_ptr<Backend>> MakeBenchBackend(const std::string& device,
                                                                 const BackendOptions& options) {
  if (device == "cpu" && !options.matmul_table.empty()) {
    return absl::InvalidArgumentError(
        "--matmul-table: only cards have a choice of matrix algorithms; give --device=cuda");
  }
  if (device == "cpu") return MakeCpuBackend(options);
  ASSIGN_OR_RETURN(const int ordinal, ParseCudaDevice(device));
  return MakeCudaBackend(options, ordinal);
}

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_BENCH_DEVICE_H_
