// The description of a convolution graph for cudnn-frontend, and plans for a card that is not here.
// Tests let headers and library check both without a card.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_CONVOLUTION_GRAPH_BUILDER_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_CONVOLUTION_GRAPH_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "stage/backends/cuda/cudnn/convolution/convolution_graphs.h"
#include "stage/backends/cuda/cudnn/frontend/use_cudnn.h"

namespace cudnn_frontend::graph {
class Graph;
}  // namespace cudnn_frontend::graph

namespace stagecoach::cudnn {

// Names of the tensors in a graph.
enum ConvolutionTensorId : int64_t { kImage = 1, kWeight, kPlaces, kBias };

std::shared_ptr<cudnn_frontend::graph::Graph> DescribeConvolution(const ConvolutionProblem& problem,
                                                                  int compute_capability);

// What the headers say to the graph without a card: OK, or why not. Needs the library.
absl::Status CheckDescription(const ConvolutionProblem& problem, int compute_capability);

// Graphs that are planned by cuDNN's heuristics and compiled as for a card with these properties,
// but cannot be run: Run is FAILED_PRECONDITION. `properties` is cuDNN's own text of a card (JSON
// of its device properties, which it does not promise to keep): INVALID_ARGUMENT if it takes it
// not.
absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> PlanConvolutionsFor(
    const std::string& properties, int compute_capability);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_CONVOLUTION_GRAPH_BUILDER_H_
