#include "stage/backends/cuda/runtime/cuda_device_api.h"

#include <cuda_runtime_api.h>

#include "stage/backends/cuda/runtime/cuda_codes.h"

namespace stagecoach {
namespace {

static_assert(device_code::kSuccess == cudaSuccess);
static_assert(device_code::kOutOfMemory == cudaErrorMemoryAllocation);
static_assert(device_code::kInsufficientDriver == cudaErrorInsufficientDriver);
static_assert(device_code::kNoDevice == cudaErrorNoDevice);
static_assert(device_code::kInvalidDevice == cudaErrorInvalidDevice);
static_assert(device_code::kNotReady == cudaErrorNotReady);

cudaEvent_t Event(DeviceEvent event) { return static_cast<cudaEvent_t>(event); }

class CudaDeviceApi final : public DeviceApi {
 public:
  std::string ErrorName(int code) const override {
    return cudaGetErrorName(static_cast<cudaError_t>(code));
  }
  std::string ErrorText(int code) const override {
    return cudaGetErrorString(static_cast<cudaError_t>(code));
  }

  int DriverVersion(int* version) override { return CudaCode(cudaDriverGetVersion(version)); }
  int RuntimeVersion(int* version) override { return CudaCode(cudaRuntimeGetVersion(version)); }
  int DeviceCount(int* count) override { return CudaCode(cudaGetDeviceCount(count)); }
  int Properties(int ordinal, DeviceProperties* properties) override {
    cudaDeviceProp found;
    const int code = CudaCode(cudaGetDeviceProperties(&found, ordinal));
    if (code != device_code::kSuccess) return code;
    *properties = {.name = found.name,
                   .compute_capability = found.major * 10 + found.minor,
                   .multiprocessors = found.multiProcessorCount,
                   .memory_bytes = static_cast<int64_t>(found.totalGlobalMem)};
    return code;
  }
  int SetDevice(int ordinal) override { return CudaCode(cudaSetDevice(ordinal)); }
  int MemoryInfo(int64_t* free_bytes, int64_t* total_bytes) override {
    size_t free = 0, total = 0;
    const int code = CudaCode(cudaMemGetInfo(&free, &total));
    *free_bytes = static_cast<int64_t>(free);
    *total_bytes = static_cast<int64_t>(total);
    return code;
  }

  int Allocate(int64_t bytes, void** data) override {
    return CudaCode(cudaMalloc(data, static_cast<size_t>(bytes)));
  }
  int Free(void* data) override { return AtExit(cudaFree(data)); }
  int AllocatePinned(int64_t bytes, void** data) override {
    return CudaCode(cudaHostAlloc(data, static_cast<size_t>(bytes), cudaHostAllocDefault));
  }
  int FreePinned(void* data) override { return AtExit(cudaFreeHost(data)); }

  int CreateStream(DeviceStream* stream) override {
    cudaStream_t created = nullptr;
    const int code = CudaCode(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
    *stream = created;
    return code;
  }
  int DestroyStream(DeviceStream stream) override {
    return AtExit(cudaStreamDestroy(CudaStream(stream)));
  }
  int SynchronizeStream(DeviceStream stream) override {
    return CudaCode(cudaStreamSynchronize(CudaStream(stream)));
  }
  int CopyToHost(void* target, const void* source, int64_t bytes, DeviceStream stream) override {
    return CudaCode(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes),
                                    cudaMemcpyDeviceToHost, CudaStream(stream)));
  }
  int CopyFromHost(void* target, const void* source, int64_t bytes, DeviceStream stream) override {
    return CudaCode(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes),
                                    cudaMemcpyHostToDevice, CudaStream(stream)));
  }

  int CreateEvent(DeviceEvent* event) override {
    cudaEvent_t created = nullptr;
    // Without blocking the wait spins, which is what a step's wait for its card should do.
    const int code = CudaCode(cudaEventCreateWithFlags(&created, cudaEventDisableTiming));
    *event = created;
    return code;
  }
  int CreateTimingEvent(DeviceEvent* event) override {
    cudaEvent_t created = nullptr;
    const int code = CudaCode(cudaEventCreateWithFlags(&created, cudaEventDefault));
    *event = created;
    return code;
  }
  int ElapsedNanos(DeviceEvent from, DeviceEvent to, int64_t* nanos) override {
    float milliseconds = 0;
    const int code = CudaCode(cudaEventElapsedTime(&milliseconds, Event(from), Event(to)));
    *nanos = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
    return code;
  }
  int DestroyEvent(DeviceEvent event) override { return AtExit(cudaEventDestroy(Event(event))); }
  int RecordEvent(DeviceEvent event, DeviceStream stream) override {
    return CudaCode(cudaEventRecord(Event(event), CudaStream(stream)));
  }
  int QueryEvent(DeviceEvent event) override { return CudaCode(cudaEventQuery(Event(event))); }
  int SynchronizeEvent(DeviceEvent event) override {
    return CudaCode(cudaEventSynchronize(Event(event)));
  }
  int StreamWaitEvent(DeviceStream stream, DeviceEvent event) override {
    return CudaCode(cudaStreamWaitEvent(CudaStream(stream), Event(event), 0));
  }
  int CallHost(DeviceStream stream, void (*function)(void*), void* data) override {
    return CudaCode(cudaLaunchHostFunc(CudaStream(stream), function, data));
  }

 private:
  // Static objects may give memory back when the runtime has gone, and all memory with it.
  static int AtExit(cudaError_t error) {
    const int code = CudaCode(error);
    return code == cudaErrorCudartUnloading ? device_code::kSuccess : code;
  }
};

}  // namespace

std::shared_ptr<DeviceApi> MakeCudaDeviceApi() { return std::make_shared<CudaDeviceApi>(); }

}  // namespace stagecoach
