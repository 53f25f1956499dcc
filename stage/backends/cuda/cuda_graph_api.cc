#include "stage/backends/cuda/cuda_graph_api.h"

#include <cuda_runtime_api.h>

namespace stagecoach {
namespace {

// A failed call also leaves its error for the next cudaGetLastError, which asks about a launch.
int Code(cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error;
}

cudaStream_t Stream(DeviceStream stream) { return static_cast<cudaStream_t>(stream); }

class CudaGraphApi final : public GraphApi {
 public:
  // Of this thread: a call that no graph can have (memory, a look at an event) ends the capture with an error if this thread
  // makes it, and does as ever if another one does.
  int BeginCapture(DeviceStream stream) override {
    return Code(cudaStreamBeginCapture(Stream(stream), cudaStreamCaptureModeThreadLocal));
  }
  int EndCapture(DeviceStream stream, DeviceGraph* graph) override {
    cudaGraph_t captured = nullptr;
    int code = Code(cudaStreamEndCapture(Stream(stream), &captured));
    if (code != device_code::kSuccess) return code;
    cudaGraphExec_t launchable = nullptr;
    code = Code(cudaGraphInstantiate(&launchable, captured, 0));
    Code(cudaGraphDestroy(captured));
    *graph = launchable;
    return code;
  }
  int Launch(DeviceGraph graph, DeviceStream stream) override {
    return Code(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), Stream(stream)));
  }
  int Destroy(DeviceGraph graph) override {
    return Code(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
  }
};

}  // namespace

std::unique_ptr<GraphApi> MakeCudaGraphApi() { return std::make_unique<CudaGraphApi>(); }

}  // namespace stagecoach
