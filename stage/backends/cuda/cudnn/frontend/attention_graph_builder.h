// The description of an attention graph for cudnn-frontend. Building and running a graph need a
// card. The description does not: tests check it with cudnn-frontend's headers alone.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_ATTENTION_GRAPH_BUILDER_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_ATTENTION_GRAPH_BUILDER_H_

#include <cstdint>
#include <memory>

#include "stage/backends/cuda/cudnn/attention/attention_graphs.h"
#include "stage/backends/cuda/cudnn/frontend/use_cudnn.h"

namespace cudnn_frontend::graph {
class Graph;
}  // namespace cudnn_frontend::graph

namespace stagecoach::cudnn {

// Names of the tensors in a graph.
enum TensorId : int64_t { kQ = 1, kK, kV, kOut, kLogSumExp, kDOut, kDQ, kDK, kDV };

std::shared_ptr<cudnn_frontend::graph::Graph> DescribeAttention(Direction direction,
                                                                const AttentionLayouts& layouts,
                                                                int compute_capability);

// Lets the headers check the graph without a card: OK, or the reason. Needs the library.
absl::Status CheckDescription(Direction direction, const AttentionLayouts& layouts,
                              int compute_capability);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_ATTENTION_GRAPH_BUILDER_H_
