// Interface to cuDNN's pools: a graph is built for a problem, then run on a CUDA stream. In
// production cuDNN is behind it (frontend/), in tests plain loops. Programs built without
// cudnn-frontend have only an error text there (absent/).
// Ownership: graphs borrow their PoolGraphs. Pointers and workspace of Run are borrowed until the
//            stream has finished the run.
// Threads:   one at a time, with the card current.
// Errors:    Build: UNIMPLEMENTED if no allowed engine supports the problem in the available
//            workspace. Other errors of Build, and all of Run: RESOURCE_EXHAUSTED if cuDNN was
//            refused memory, else INTERNAL with its message.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_GRAPHS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_GRAPHS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/pool/pool_choice.h"
#include "stage/backends/cuda/cudnn/pool/pool_problem.h"

namespace stagecoach::cudnn {

// Tensors in the layouts of LayoutsOf(problem). The pass decides which one is written; it is not
// read.
struct PoolPointers {
  void *image = nullptr, *places = nullptr;
};

class PoolGraph {
 public:
  virtual ~PoolGraph() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual std::string engine() const = 0;  // for tables: "1", in cuDNN's numbers
  virtual absl::Status Run(const PoolPointers& pointers, void* workspace) = 0;
};

class PoolGraphs {
 public:
  virtual ~PoolGraphs() = default;
  virtual CudnnOffer offer() const = 0;
  // Equal bits need the same text: "cuDNN 9.19.0 by cudnn-frontend 1.32.0".
  virtual std::string version() const = 0;
  // Builds a graph by an engine without barred notes (engine_notes.h) and within the workspace.
  virtual absl::StatusOr<std::unique_ptr<PoolGraph>> Build(const PoolProblem& problem,
                                                           int64_t workspace_bytes) = 0;
};

// stream: a cudaStream_t, which is borrowed. Loads cuDNN, and starts it with the first graph.
// UNIMPLEMENTED if built without cudnn-frontend. UNAVAILABLE if cuDNN is not found or is not
// version 9. FAILED_PRECONDITION if it is of no use on this card.
absl::StatusOr<std::unique_ptr<PoolGraphs>> OpenPoolGraphs(void* stream, int compute_capability);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_GRAPHS_H_
