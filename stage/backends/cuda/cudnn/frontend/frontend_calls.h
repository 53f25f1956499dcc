// Helpers of the files that call cudnn-frontend. Its headers take a minute to compile, so only
// files of this folder include this one.
// Threads:   one at a time.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_FRONTEND_CALLS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_FRONTEND_CALLS_H_

#include <cudnn_frontend.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/numbers/precision.h"
#include "stage/backends/cuda/cudnn/cudnn_offer.h"
#include "stage/backends/cuda/cudnn/tensor_layout.h"

namespace stagecoach::cudnn {

namespace fe = ::cudnn_frontend;

inline constexpr char kRemedy[] =
    "; STAGECOACH_CUDNN=off in the environment computes without cuDNN";

// UNIMPLEMENTED if no engine takes the graph, else as attention_graphs.h and convolution_graphs.h
// say.
absl::Status ToStatus(const fe::error_t& error, const std::string& version, const char* step);

// BarredNotes of engine_notes.h, in cuDNN's names.
std::vector<cudnnBackendNumericalNote_t> NotesBarredFor(Precision precision);

// cuDNN's message about the call that just failed: "CUDNN_STATUS_NOT_SUPPORTED: why".
std::string LastMessage(cudnnStatus_t status);
// As ToStatus, for the result of a function of cuDNN; message: its LastMessage.
absl::Status LibraryStatus(cudnnStatus_t status, const std::string& message,
                           const std::string& version, const char* step);

// Calls `body` and catches exceptions: the headers throw if they cannot load something.
template <typename Body>
auto Guard(const std::string& version, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(version, ": ", error.what(), kRemedy));
  }
}

// "cuDNN 9.19.0 by cudnn-frontend 1.32.0".
std::string FrontendVersion(const CudnnOffer& offer);

// A handle of cuDNN for a stream, which it borrows.
class CudnnHandle {
 public:
  explicit CudnnHandle(cudaStream_t stream) : stream_(stream) {}
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  // Does nothing if it is started already.
  absl::Status Start(const std::string& version);
  cudnnHandle_t get() const { return handle_; }

 private:
  const cudaStream_t stream_;
  cudnnHandle_t handle_ = nullptr;
};

// An input of a graph.
fe::graph::Tensor_attributes Describe(const char* name, int64_t id, const TensorLayout& layout);
// Makes a tensor of a graph its output.
void Output(const std::shared_ptr<fe::graph::Tensor_attributes>& tensor, int64_t id,
            const TensorLayout& layout);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_FRONTEND_CALLS_H_
