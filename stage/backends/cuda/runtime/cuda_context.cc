#include "stage/backends/cuda/runtime/cuda_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "devices/card/card_profile.h"
#include "stage/backends/cuda/runtime/blas_library.h"
#include "stage/backends/cuda/runtime/cuda_device_api.h"
#include "stage/backends/device/device_memory.h"

namespace stagecoach {
namespace {

// What NVIDIA recommends for Hopper; a fixed size, as cuBLASLt's choice of algorithm depends on it.
constexpr int64_t kWorkspaceBytes = kCardWorkspaceBytes;
// Of the own kernels; raised where the same step gives other bits than before. 2: the tree of an
// embedding's gradient, padded rows of logits. 3: averages over windows may be a library's; chunks
// and roundings of the gradients of layer norm and RMS norm; head and loss by chunks of rows.
constexpr int kKernelsVersion = 3;

}  // namespace

struct CudaContext::State {
  State(int device, int64_t memory_limit_bytes, Reuse reuse)
      : ordinal(device),
        limit_bytes(memory_limit_bytes),
        api(MakeCudaDeviceApi()),
        fault(std::make_shared<DeviceFault>(api, device)),
        device_memory(MakeDeviceAllocator(api, device, memory_limit_bytes, fault, reuse)),
        pinned_memory(MakePinnedAllocator(api, device, fault)) {}

  ~State() {
    if (stream != nullptr) {
      api->SetDevice(ordinal);
      api->SynchronizeStream(stream);
    }
    device_memory->SetRelief(nullptr);
    staging.reset();
    clock.reset();
    progress.reset();
    workspace.reset();
    if (blas != nullptr) cuda::Blas().Destroy(blas);
    device_memory->ReleaseCached();
    pinned_memory->ReleaseCached();
    if (stream != nullptr) api->DestroyStream(stream);
  }

  absl::Status Open();

  const int ordinal;
  const int64_t limit_bytes;
  const std::shared_ptr<DeviceApi> api;
  const std::shared_ptr<DeviceFault> fault;
  const std::unique_ptr<Allocator> device_memory, pinned_memory;
  DeviceProperties properties;
  DeviceStream stream = nullptr;
  cublasLtHandle_t blas = nullptr;
  std::shared_ptr<Buffer> workspace;
  std::unique_ptr<LinkStaging> staging;
  std::unique_ptr<DeviceClock> clock;
  std::unique_ptr<DeviceProgress> progress;
};

absl::Status CudaContext::State::Open() {
  ASSIGN_OR_RETURN(properties, FindDevice(*api, ordinal));
  fault->Note(api->SetDevice(ordinal), "opening the card");
  fault->Note(api->CreateStream(&stream), "creating a stream");
  RETURN_IF_ERROR(fault->status());
  RETURN_IF_ERROR(CheckMemoryLimit(*api, ordinal, limit_bytes));
  if (const absl::Status status = cuda::SharedBlasLibrary().status(); !status.ok()) {
    return Annotate(status, absl::StrCat("device cuda:", ordinal));
  }
  const cublasStatus_t status = cuda::Blas().Create(&blas);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return absl::UnavailableError(
        absl::StrCat("device cuda:", ordinal, ": cuBLASLt ", cuda::Blas().GetVersion(),
                     " did not start: ", cuda::Blas().GetStatusString(status)));
  }
  ASSIGN_OR_RETURN(workspace, device_memory->Allocate(kWorkspaceBytes, MemoryKind::kWorkspace));
  staging = std::make_unique<LinkStaging>(api, stream, device_memory.get(), fault);
  clock = std::make_unique<DeviceClock>(api, stream, fault);
  progress = std::make_unique<DeviceProgress>(api, stream, fault);
  device_memory->SetRelief([this] {  // Relieve waits too, but without a sign that the card gets on
    return staging->Relieve([this] { progress->Wait("waiting for memory"); });
  });
  return fault->status();
}

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Open(int ordinal,
                                                               int64_t memory_limit_bytes,
                                                               Reuse reuse) {
  auto state = std::make_unique<State>(ordinal, memory_limit_bytes, reuse);
  RETURN_IF_ERROR(state->Open());
  return std::unique_ptr<CudaContext>(new CudaContext(std::move(state)));
}

CudaContext::CudaContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaContext::~CudaContext() = default;

int CudaContext::ordinal() const { return state_->ordinal; }
cudaStream_t CudaContext::stream() const { return static_cast<cudaStream_t>(state_->stream); }
cublasLtHandle_t CudaContext::blas() const { return state_->blas; }
void* CudaContext::workspace() const { return state_->workspace->data(); }
size_t CudaContext::workspace_bytes() const { return kWorkspaceBytes; }
const std::string& CudaContext::card() const { return state_->properties.name; }
int CudaContext::multiprocessors() const { return state_->properties.multiprocessors; }
int CudaContext::compute_capability() const { return state_->properties.compute_capability; }

void CudaContext::MakeCurrent() {
  state_->fault->Note(state_->api->SetDevice(state_->ordinal), "making the card current");
}

const std::shared_ptr<DeviceFault>& CudaContext::fault() const { return state_->fault; }

void CudaContext::NoteBlas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text =
      absl::StrCat("cuBLASLt ", cuda::Blas().GetVersion(), ": ", cuda::Blas().GetStatusName(status),
                   ": ", cuda::Blas().GetStatusString(status));
  state_->fault->NoteStatus(
      status == CUBLAS_STATUS_ALLOC_FAILED
          ? absl::ResourceExhaustedError(
                absl::StrCat(text, "; use more stages or smaller micro-batches"))
          : absl::InternalError(absl::StrCat(text, "; restart the stage server")),
      what);
}

bool CudaContext::ok() const { return state_->fault->ok(); }
absl::Status CudaContext::status() const { return state_->fault->status(); }

absl::Status CudaContext::Synchronize() {
  MakeCurrent();
  state_->progress->Wait("waiting for what was queued");
  return status();
}

Allocator& CudaContext::allocator() { return *state_->device_memory; }
Allocator& CudaContext::host_allocator() { return *state_->pinned_memory; }
LinkStaging& CudaContext::staging() { return *state_->staging; }
DeviceClock& CudaContext::clock() { return *state_->clock; }
DeviceProgress& CudaContext::progress() { return *state_->progress; }

std::string CudaContext::fingerprint() const {
  int runtime = 0;
  state_->api->RuntimeVersion(&runtime);
  const DeviceProperties& card = state_->properties;
  return absl::StrCat("cuda, ", card.name, " (sm_", card.compute_capability, ", ",
                      card.multiprocessors, " multiprocessors), CUDA ", VersionText(runtime),
                      ", cuBLASLt ", cuda::Blas().GetVersion(), ", kernels ", kKernelsVersion);
}

}  // namespace stagecoach
