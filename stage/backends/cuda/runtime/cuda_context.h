// CudaContext: one device as the executor thread uses it. It has a compute stream, a cuBLASLt
// handle, a fixed workspace and the allocators. It keeps errors in a DeviceFault.
// Ownership: owned by the back end; borrows nothing. Buffers of its allocators may outlive it.
// Threads:   executor thread only, except allocator(), host_allocator(), fault() and status(),
//            which are thread-safe. Before work is queued MakeCurrent() must have run on that
//            thread. It is cheap, and every operation of the back end begins with it. The runtime's
//            current device is a property of the thread, and the executor thread did not open the
//            context.
// Units and shapes: bytes. One compute stream: everything queued on stream() runs in order. So a
//            released buffer may be handed out again at once: work that is queued with it later
//            runs later.
// Errors:    Open: UNAVAILABLE or INVALID_ARGUMENT with a remedy. Later: fault() keeps the first
//            error, and status() names the operation that met it. A device is of no use after that,
//            unless it was a refusal of memory.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CONTEXT_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CONTEXT_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/backends/device/device_clock.h"
#include "stage/backends/device/device_progress.h"
#include "stage/backends/device/link_staging.h"
#include "stage/tensor/caching_allocator.h"

namespace stagecoach {

class CudaContext {
 public:
  // memory_limit_bytes 0: all of the card's memory. The limit covers the workspace as well.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Open(int ordinal, int64_t memory_limit_bytes,
                                                           Reuse reuse = Reuse::kLast);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();  // waits for queued work

  int ordinal() const;
  cudaStream_t stream() const;
  cublasLtHandle_t blas() const;
  // Scratch for one operation at a time, in stream order: cuBLASLt's workspace, partial sums.
  void* workspace() const;
  size_t workspace_bytes() const;  // the same for every memory limit: algorithms depend on it

  const std::string& card() const;  // as the driver names it
  int multiprocessors() const;
  int compute_capability() const;  // 90 means 9.0

  void MakeCurrent();
  // Notes errors, with a literal that names the operation: "LinearForward".
  const std::shared_ptr<DeviceFault>& fault() const;
  void NoteBlas(cublasStatus_t status, const char* what);
  bool ok() const;
  absl::Status status() const;
  absl::Status Synchronize();  // waits for the stream, ticking on the way; then status()

  Allocator& allocator();       // device memory
  Allocator& host_allocator();  // pinned host memory: the back end's link_allocator()
  LinkStaging& staging();       // for CopyToLink and CopyFromLink
  DeviceClock& clock();         // of the compute stream
  DeviceProgress& progress();   // of the compute stream
  // Equal bits need the same text: card, compute capability, runtime, cuBLASLt.
  std::string fingerprint() const;

 private:
  struct State;
  explicit CudaContext(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_CUDA_CONTEXT_H_
