// For tests: two back ends of the same card, one with cuDNN and one without.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_WAYS_TESTING_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_WAYS_TESTING_H_

#include <cstdlib>
#include <memory>
#include <utility>

#include "stage/backends/backend.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach::conformance {

// Null without a card. Sets STAGECOACH_CUDNN for a moment: call it from one thread at a time.
inline std::unique_ptr<Backend> MakeOnCard(bool with_cudnn) {
  setenv("STAGECOACH_CUDNN", "off", 1);
  if (with_cudnn) unsetenv("STAGECOACH_CUDNN");
  auto backend = MakeCudaBackend({}, 0);
  unsetenv("STAGECOACH_CUDNN");
  return backend.ok() ? *std::move(backend) : nullptr;
}

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDA_WAYS_TESTING_H_
