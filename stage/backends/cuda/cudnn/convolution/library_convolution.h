// LibraryConvolution: the back end's convolutions through convolution graphs. It decides whether
// graphs take a problem, keeps each problem's plan, and cuts the fixed workspace. It takes no other
// memory, so no forecast has to count it. If a problem does not fit, own kernels take it.
// Ownership: owns the graphs; borrows the stream's workspace, which all operations share.
// Threads:   executor thread only.
// Units and shapes: as ConvolutionArgs.
// Errors:    of Build and Run (convolution_graphs.h). "Not supported" is none: own kernels take
//            over.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_LIBRARY_CONVOLUTION_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_LIBRARY_CONVOLUTION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_graphs.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_operands.h"

namespace stagecoach::cudnn {

class LibraryConvolution {
 public:
  struct Workspace {
    void* data = nullptr;  // on a multiple of 256 bytes
    int64_t bytes = 0;     // a constant of the program: choices depend on it
  };
  // graphs: OpenConvolutionGraphs; an error means that own kernels do everything.
  LibraryConvolution(absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> graphs, Workspace fixed);
  ~LibraryConvolution();

  // True: queued. False: it is for own kernels, and nothing was done.
  absl::StatusOr<bool> Run(const ConvolutionArgs& args, const AroundConvolution& around);

  // Equal bits need the same text: the graphs' version, or that own kernels do everything.
  std::string fingerprint() const;
  // How convolutions were computed since the last call, each way once. For example "cuDNN
  // convolution, engine 28 k2=4 k3=0", or "own convolution kernels, as there are no samples". Empty
  // without cuDNN.
  std::vector<std::string> TakeUsed();

 private:
  struct Plan;
  absl::StatusOr<Plan*> FindPlan(const ConvolutionProblem& problem);
  absl::StatusOr<Plan> MakePlan(const ConvolutionProblem& problem);
  absl::Status RunPlan(const ConvolutionArgs& args, const AroundConvolution& around,
                       const ConvolutionProblem& problem, const Plan& plan);
  std::byte* At(int64_t byte) const { return static_cast<std::byte*>(fixed_.data) + byte; }

  const absl::StatusOr<std::unique_ptr<ConvolutionGraphs>> graphs_;
  const Workspace fixed_;
  absl::flat_hash_map<ConvolutionProblem, std::unique_ptr<Plan>> plans_;
};

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_LIBRARY_CONVOLUTION_H_
