#include "stage/backends/cuda/runtime/cuda_graph_api.h"

#include <cuda_runtime_api.h>

#include "stage/backends/cuda/runtime/cuda_codes.h"

namespace stagecoach {
namespace {

class CudaGraphApi final : public GraphApi {
 public:
  // Of this thread: a call that no graph can have (memory, a look at an event) ends the capture
  // with an error if this thread makes it, and does as ever if another one does.
  int BeginCapture(DeviceStream stream) override {
    return CudaCode(cudaStreamBeginCapture(CudaStream(stream), cudaStreamCaptureModeThreadLocal));
  }
  int EndCapture(DeviceStream stream, DeviceGraph* graph) override {
    cudaGraph_t captured = nullptr;
    int code = CudaCode(cudaStreamEndCapture(CudaStream(stream), &captured));
    if (code != device_code::kSuccess) return code;
    cudaGraphExec_t launchable = nullptr;
    code = CudaCode(cudaGraphInstantiate(&launchable, captured, 0));
    CudaCode(cudaGraphDestroy(captured));
    *graph = launchable;
    return code;
  }
  int Launch(DeviceGraph graph, DeviceStream stream) override {
    return CudaCode(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), CudaStream(stream)));
  }
  int Destroy(DeviceGraph graph) override {
    return CudaCode(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
  }
};

}  // namespace

std::unique_ptr<GraphApi> MakeCudaGraphApi() { return std::make_unique<CudaGraphApi>(); }

}  // namespace stagecoach
