#include "stage/backends/cuda/cudnn/frontend/frontend_calls.h"

#include "absl/strings/match.h"
#include "base/errors/status.h"
#include "stage/backends/cuda/cudnn/engine_notes.h"
#include "stage/backends/cuda/cudnn/frontend/use_cudnn.h"

namespace cudnn_frontend {
// With NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING the headers find cuDNN's functions through this.
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace stagecoach::cudnn {
namespace {

cudnnBackendNumericalNote_t NoteOf(EngineNote note) {
  switch (note) {
    case EngineNote::kNondeterministic:
      return CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    case EngineNote::kTensorCores:
      return CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    case EngineNote::kDownConvertedInputs:
      return CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    case EngineNote::kReducedPrecisionSums:
      return CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    case EngineNote::kFourier:
      return CUDNN_NUMERICAL_NOTE_FFT;
    case EngineNote::kWinograd:
      return CUDNN_NUMERICAL_NOTE_WINOGRAD;
  }
  return CUDNN_NUMERICAL_NOTE_TYPE_COUNT;  // not reached: the switch is exhaustive
}

}  // namespace

std::vector<cudnnBackendNumericalNote_t> NotesBarredFor(Precision precision) {
  std::vector<cudnnBackendNumericalNote_t> notes;
  for (const EngineNote note : BarredNotes(precision)) notes.push_back(NoteOf(note));
  return notes;
}

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

std::string LastMessage(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return "";
  return absl::StrCat(fe::detail::get_error_string(status), ": ",
                      fe::detail::get_last_error_string_());
}

absl::Status LibraryStatus(cudnnStatus_t status, const std::string& message,
                           const std::string& version, const char* step) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat(version, ", ", step, ": ", message);
  if (absl::StrContains(message, "NOT_SUPPORTED") && RefusesTheGraph(message)) {
    return absl::UnimplementedError(text);
  }
  if (LacksMemory(message)) return absl::ResourceExhaustedError(absl::StrCat(text, kRemedy));
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
