// Interface to cuDNN's convolutions: a graph is built for a problem, then run on a CUDA stream. In
// production cudnn-frontend is behind it (frontend/), in tests plain loops. Programs built
// without cudnn-frontend have only an error text there (absent/).
// Ownership: graphs borrow their ConvolutionGraphs. Pointers and workspace of Run are borrowed
//            until the stream has finished the run.
// Threads:   one at a time, with the device's context current.
// Errors:    Build: UNIMPLEMENTED if no allowed engine supports the problem in the available
//            workspace. Other errors of Build, and all of Run: RESOURCE_EXHAUSTED if cuDNN was
//            refused memory, else INTERNAL with cuDNN's message.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_GRAPHS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_GRAPHS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_choice.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_problem.h"

namespace stagecoach::cudnn {

// Tensors in the layouts of LayoutsOf(problem). The problem's pass decides which one is written; it
// is not read. A weight's gradient is float32; the others have the problem's type. places: the
// output (forward) or its gradient.
struct ConvolutionPointers {
  void *image = nullptr, *weight = nullptr, *places = nullptr;
  void* bias = nullptr;  // if the problem has one
};

class ConvolutionGraph {
 public:
  virtual ~ConvolutionGraph() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual std::string engine() const = 0;  // for tables: "28 k2=4 k3=0", in cuDNN's numbers
  virtual absl::Status Run(const ConvolutionPointers& pointers, void* workspace) = 0;
};

class ConvolutionGraphs {
 public:
  virtual ~ConvolutionGraphs() = default;
  virtual CudnnOffer offer() const = 0;
  // Equal bits need the same text: "cuDNN 9.19.0 by cudnn-frontend 1.32.0".
  virtual std::string version() const = 0;
  // Builds a graph with an engine that has none of BarredNotes(problem.precision) and needs at most
  // `workspace_bytes`.
  virtual absl::StatusOr<std::unique_ptr<ConvolutionGraph>> Build(const ConvolutionProblem& problem,
                                                                  int64_t workspace_bytes) = 0;
};

// stream: a cudaStream_t, which is borrowed. Loads cuDNN, and starts it with the first graph.
// UNIMPLEMENTED if built without cudnn-frontend. UNAVAILABLE if cuDNN is not found or is not
// version 9. FAILED_PRECONDITION if it is of no use on this card.
absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> OpenConvolutionGraphs(void* stream,
                                                                         int compute_capability);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_GRAPHS_H_
