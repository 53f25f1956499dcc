// In place of frontend/ where the headers of cudnn-frontend are not.
#include "stage/backends/cuda/cudnn/attention/attention_graphs.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_graphs.h"
#include "stage/backends/cuda/cudnn/pool/pool_graphs.h"

namespace stagecoach::cudnn {

absl::StatusOr<std::unique_ptr<AttentionGraphs>> OpenAttentionGraphs(void*, int) {
  return absl::UnimplementedError(
      "built without cudnn-frontend, so attention is computed by own kernels (docs/gpu.md)");
}

absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> OpenConvolutionGraphs(void*, int) {
  return absl::UnimplementedError(
      "built without cudnn-frontend, so convolutions are computed by own kernels (docs/gpu.md)");
}

absl::StatusOr<std::unique_ptr<PoolGraphs>> OpenPoolGraphs(void*, int) {
  return absl::UnimplementedError(
      "built without cudnn-frontend, so pools are computed by own kernels (docs/gpu.md)");
}

}  // namespace stagecoach::cudnn
