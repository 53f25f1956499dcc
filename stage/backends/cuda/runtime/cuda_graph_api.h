// The CUDA runtime's graphs as a GraphApi.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_GRAPH_API_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_GRAPH_API_H_

#include <memory>

#include "stage/backends/device/graph_api.h"

namespace stagecoach {

std::unique_ptr<GraphApi> MakeCudaGraphApi();

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_GRAPH_API_H_
