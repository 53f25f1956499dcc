// The device that a benchmark is told to use: cpu, cuda or cuda:N.
// Errors: INVALID_ARGUMENT for another name, what opening a card answers.
#ifndef STAGECOACH_BENCH_OPERATIONS_BENCH_DEVICE_H_
#define STAGECOACH_BENCH_OPERATIONS_BENCH_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/device_name.h"
#include "base/status.h"
#include "stage/backends/backend.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach {

inline absl::StatusOr<std::unique_ptr<Backend>> MakeBenchBackend(const std::string& device,
                                                                 int threads) {
  if (device == "cpu") return MakeCpuBackend({.threads = threads});
  ASSIGN_OR_RETURN(const int ordinal, ParseCudaDevice(device));
  return MakeCudaBackend({}, ordinal);
}

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_BENCH_DEVICE_H_
