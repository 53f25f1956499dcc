// Interface to cuDNN's attention: a graph is built for a shape, then run on a CUDA stream. In
// production cudnn-frontend is behind it (frontend/), in tests plain loops. Programs built without
// cudnn-frontend have only an error text there (absent/).
// Ownership: graphs borrow their AttentionGraphs. Pointers and workspace of Run are borrowed until
//            the stream has finished the run.
// Threads:   one at a time, with the card current.
// Errors:    Build: UNIMPLEMENTED if cuDNN does not support the graph. Other errors of Build, and
//            all of Run: RESOURCE_EXHAUSTED if cuDNN was refused memory, else INTERNAL with its
//            message.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_GRAPHS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_GRAPHS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/attention/attention_choice.h"
#include "stage/backends/cuda/cudnn/attention/attention_layout.h"

namespace stagecoach::cudnn {

enum class Direction { kForward, kBackward };

// Causal attention in BF16 with float32 inside, scores scaled by 1 / sqrt(head width). Forward: q,
// k, v to out and log_sum_exp (natural logarithm, float32). Backward: all that and d_out to d_q,
// d_k, d_v, repeatable bit for bit.
struct AttentionPointers {
  void *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr, *log_sum_exp = nullptr;
  void *d_out = nullptr, *d_q = nullptr, *d_k = nullptr, *d_v = nullptr;  // backward
};

class AttentionGraph {
 public:
  virtual ~AttentionGraph() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual absl::Status Run(const AttentionPointers& pointers, void* workspace) = 0;
};

class AttentionGraphs {
 public:
  virtual ~AttentionGraphs() = default;
  virtual CudnnOffer offer() const = 0;
  // Equal bits need the same text: "cuDNN 9.19.0 by cudnn-frontend 1.32.0".
  virtual std::string version() const = 0;
  virtual absl::StatusOr<std::unique_ptr<AttentionGraph>> Build(
      Direction direction, const AttentionLayouts& layouts) = 0;
};

// stream: a cudaStream_t, which is borrowed. Loads cuDNN, and starts it with the first graph.
// UNIMPLEMENTED if built without cudnn-frontend. UNAVAILABLE if cuDNN is not found or is not
// version 9. FAILED_PRECONDITION if it is of no use on this card.
absl::StatusOr<std::unique_ptr<AttentionGraphs>> OpenAttentionGraphs(void* stream,
                                                                     int compute_capability);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_GRAPHS_H_
