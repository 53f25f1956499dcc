// LibraryPool: the back end's averages over windows through pool graphs. It decides whether graphs
// take a problem, and keeps each problem's plan. It takes no memory but the fixed workspace, so no
// forecast has to count it. If a plan wants more, own kernels take the problem.
// Ownership: owns the graphs; borrows the stream's workspace, which all operations share.
// Threads:   executor thread only.
// Units and shapes: as AveragePoolArgs.
// Errors:    of Build and Run (pool_graphs.h). "Not supported" is none: own kernels take over.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_LIBRARY_POOL_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_LIBRARY_POOL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/pool/pool_graphs.h"
#include "stage/backends/cuda/cudnn/pool/pool_operands.h"

namespace stagecoach::cudnn {

class LibraryPool {
 public:
  struct Workspace {
    void* data = nullptr;  // on a multiple of 256 bytes
    int64_t bytes = 0;     // a constant of the program: choices depend on it
  };
  // graphs: OpenPoolGraphs; an error means that own kernels do everything.
  LibraryPool(absl::StatusOr<std::unique_ptr<PoolGraphs>> graphs, Workspace fixed);
  ~LibraryPool();

  // True: queued. False: it is for own kernels, and nothing was done.
  absl::StatusOr<bool> Run(const AveragePoolArgs& args);

  // Equal bits need the same text: the graphs' version, or that own kernels do everything.
  std::string fingerprint() const;
  // How pools were computed since the last call, each way once. For example "cuDNN average pool,
  // engine 1", or "own pool kernels, as there are no samples". Empty without cuDNN.
  std::vector<std::string> TakeUsed();

 private:
  struct Plan;
  absl::StatusOr<Plan*> FindPlan(const PoolProblem& problem);
  absl::StatusOr<Plan> MakePlan(const PoolProblem& problem);

  const absl::StatusOr<std::unique_ptr<PoolGraphs>> graphs_;
  const Workspace fixed_;
  absl::flat_hash_map<PoolProblem, std::unique_ptr<Plan>> plans_;
};

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_LIBRARY_POOL_H_
