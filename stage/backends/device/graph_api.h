// GraphApi: the runtime calls that make one launch of many, as CallQueue uses them: CUDA graphs in
// production, recorded functions in tests.
// Ownership: a graph is the runtime's; its user destroys it, even while it runs.
// Threads:   one, with the card current; calls of other threads do not disturb a capture.
// Errors:    codes, as DeviceApi's; 0 is success.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_API_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_API_H_

#include "stage/backends/device/device_api.h"

namespace stagecoach {

using DeviceGraph = void*;

class GraphApi {
 public:
  virtual ~GraphApi() = default;
  // Work queued on the stream from now on is recorded and does not run.
  virtual int BeginCapture(DeviceStream stream) = 0;
  // Ends the capture, even on an error. Success: `graph` can be launched.
  virtual int EndCapture(DeviceStream stream, DeviceGraph* graph) = 0;
  // Queues the graph as one piece. An error means that nothing was queued.
  virtual int Launch(DeviceGraph graph, DeviceStream stream) = 0;
  virtual int Destroy(DeviceGraph graph) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_API_H_
