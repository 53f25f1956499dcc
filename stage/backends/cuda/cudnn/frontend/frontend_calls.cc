#include "stage/backends/cuda/cudnn/frontend/frontend_calls.h"

#include "base/status.h"
#include "stage/backends/cuda/cudnn/frontend/use_cudnn.h"

namespace cudnn_frontend {
// With NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING the headers find cuDNN's functions through this.
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace stagecoach::cudnn {

absl::Status ToStatus(const fe::error_t& error, const std::string& version, const char* step) {
  if (error.is_good()) return absl::OkStatus();
  const std::string text = absl::StrCat(version, ", ", step, ": ", error.err_msg);
  // What the headers refuse by their tables, and what no engine of the library takes.
  const bool no_engine = error.code == fe::error_code_t::HEURISTIC_QUERY_FAILED ||
                         error.code == fe::error_code_t::GRAPH_EXECUTION_PLAN_CREATION_FAILED;
  if (error.code == fe::error_code_t::GRAPH_NOT_SUPPORTED ||
      (no_engine && RefusesTheGraph(error.err_msg))) {
    return absl::UnimplementedError(text);
  }
  if (LacksMemory(error.err_msg)) return absl::ResourceExhaustedError(absl::StrCat(text, kRemedy));
  return absl::InternalError(absl::StrCat(text, kRemedy));
}

std::string FrontendVersion(const CudnnOffer& offer) {
  return absl::StrCat("cuDNN ", VersionText(offer.version), " by cudnn-frontend ",
                      VersionText(CUDNN_FRONTEND_VERSION));
}

CudnnHandle::~CudnnHandle() {
  if (handle_ != nullptr) fe::detail::destroy_handle(handle_);
}

absl::Status CudnnHandle::Start(const std::string& version) {
  if (handle_ != nullptr) return absl::OkStatus();
  cudnnStatus_t status = fe::detail::create_handle(&handle_);
  if (status == CUDNN_STATUS_SUCCESS) status = fe::detail::set_stream(handle_, stream_);
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(version,
                                          ", starting: ", fe::detail::get_error_string(status),
                                          ": ", fe::detail::get_last_error_string_(), kRemedy));
}

fe::graph::Tensor_attributes Describe(const char* name, int64_t id, const TensorLayout& layout) {
  return fe::graph::Tensor_attributes()
      .set_name(name)
      .set_uid(id)
      .set_dim({layout.dims.begin(), layout.dims.end()})
      .set_stride({layout.strides.begin(), layout.strides.end()});
}

void Output(const std::shared_ptr<fe::graph::Tensor_attributes>& tensor, int64_t id,
            const TensorLayout& layout) {
  tensor->set_output(true)
      .set_uid(id)
      .set_dim({layout.dims.begin(), layout.dims.end()})
      .set_stride({layout.strides.begin(), layout.strides.end()});
}

absl::StatusOr<CudnnLibrary> UseCudnn() {
  ASSIGN_OR_RETURN(const CudnnLibrary library, OpenCudnnLibrary(CudnnName()));
  // The headers keep the addresses of the first library's functions.
  if (fe::cudnn_dlhandle == nullptr) fe::cudnn_dlhandle = library.handle;
  return library;
}

}  // namespace stagecoach::cudnn
