// In place of frontend/frontend_graphs.cc where the headers of cudnn-frontend are not.
#include "stage/backends/cuda/cudnn/attention_graphs.h"

namespace stagecoach::cudnn {

absl::StatusOr<std::unique_ptr<AttentionGraphs>> OpenAttentionGraphs(void*, int) {
  return absl::UnimplementedError(
      "built without cudnn-frontend, so attention is computed by own kernels (docs/gpu.md)");
}

}  // namespace stagecoach::cudnn
