// Loads cuDNN for the headers of cudnn-frontend.
// Threads:   one at a time.
// Errors:    OpenCudnnLibrary's.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_USE_CUDNN_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_USE_CUDNN_H_

#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/cudnn_library.h"

namespace stagecoach::cudnn {

absl::StatusOr<CudnnLibrary> UseCudnn();

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_USE_CUDNN_H_
