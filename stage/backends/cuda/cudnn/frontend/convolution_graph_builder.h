// The description of a convolution graph for cudnn-frontend, and plans for an absent card. So tests
// check both with headers and library, without a card.
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

// Lets the headers check the graph without a card: OK, or the reason. Needs the library.
absl::Status CheckDescription(const ConvolutionProblem& problem, int compute_capability);

// Graphs that cuDNN's heuristics plan and compile for a card with these properties. They cannot be
// run: Run is FAILED_PRECONDITION. `properties` is cuDNN's own JSON text of a card, whose form may
// change with its version. INVALID_ARGUMENT: cuDNN refuses the text.
absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> PlanConvolutionsFor(
    const std::string& properties, int compute_capability);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_CONVOLUTION_GRAPH_BUILDER_H_
