// GraphApi: the runtime calls that make one launch of many, as CallQueue uses them: CUDA graphs in
// production, recorded functions in tests.
// Ownership: a graph is the runtime's; whoever has it destroys it, which may be while it runs.
// Threads:   one, with the card current; what other threads ask of the card does not disturb a
//            capture.
// Errors:    codes, as DeviceApi's; 0 is success.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_API_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_API_H_

#include "stage/backends/device/device_api.h"

namespace stagecoach {

using DeviceGraph = void*;

class GraphApi {
 public:
  virtual ~GraphApi() = default;
  // What is queued on the stream from now on is written down and does not run.
  virtual int BeginCapture(DeviceStream stream) = 0;
  // Whatever it answers, the stream captures no longer. Success: `graph` can be launched.
  virtual int EndCapture(DeviceStream stream, DeviceGraph* graph) = 0;
  // Queued as one piece. An error means that nothing was.
  virtual int Launch(DeviceGraph graph, DeviceStream stream) = 0;
  virtual int Destroy(DeviceGraph graph) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_API_H_
