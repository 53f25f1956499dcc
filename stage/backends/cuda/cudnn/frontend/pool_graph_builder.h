// Plans of pools for an absent card: so tests let the library make plans without a card.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_POOL_GRAPH_BUILDER_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_POOL_GRAPH_BUILDER_H_

#include <memory>
#include <string>

#include "stage/backends/cuda/cudnn/frontend/use_cudnn.h"
#include "stage/backends/cuda/cudnn/pool/pool_graphs.h"

namespace stagecoach::cudnn {

// As PlanConvolutionsFor (convolution_graph_builder.h).
absl::StatusOr<std::unique_ptr<PoolGraphs>> PlanPoolsFor(const std::string& properties,
                                                         int compute_capability);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_POOL_GRAPH_BUILDER_H_
