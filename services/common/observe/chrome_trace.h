// ChromeTrace: a job's trace in the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open.
// A stage is a process (pid = place in the pipeline) with the threads 0 compute, 1 send, 2 receive.
// A span is a complete event. F3, R3, B3 are forward, recompute and backward of micro-batch 3. On
// the send and receive tracks >a3 and <a3 are its activation (g: gradient). Any other event has the
// name of its phase. An arrow leads from every send to the receive of the same message. If spans of
// one track overlap (two messages under way), the later one goes to another thread 10, 20, ...
// higher, "send 2". Viewers drop complete events of one thread that overlap.
// Threads:   pure function.
// Units:     times in microseconds with three decimals, of the coordinator's clock, from the first
//            span on. `otherData` states that moment. For every stage it has the clock offset that
//            was taken off its times, and the error of that estimate. If a stage's part is missing,
//            it has the reason.
// See:     docs/formats.md, "Traces"; proto/stagecoach/v1/telemetry.proto.
#ifndef STAGECOACH_SERVICES_COMMON_OBSERVE_CHROME_TRACE_H_
#define STAGECOACH_SERVICES_COMMON_OBSERVE_CHROME_TRACE_H_

#include <string>

#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// One JSON object with a line per event and a final newline.
std::string ToChromeTrace(const std::string& job_id, const v1::GetTraceResponse& trace);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_OBSERVE_CHROME_TRACE_H_
