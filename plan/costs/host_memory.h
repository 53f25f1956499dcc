// Host memory: the memory that a stage on a processor takes beside that of its layers
// (stage/backends/cpu). Calls of operations take workspace while they run (kernel_workspace.h). A
// convolution takes shares of its weight gradient, or its weight in the library's packing, for one
// call at a time. If there is room, the packed weights of all convolutions are kept from one
// micro-batch to the next. A convolution by Winograd's filtering takes a room for its tiles
// (operations/images/winograd.h).
// Forecasts are upper bounds. Those of convolutions are loose: the library tells no sizes before it
// is on the machine.
// Units:     bytes.
// Errors:    none; sizes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_PLAN_COSTS_HOST_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_HOST_MEMORY_H_

#include <cstdint>
#include <span>

#include "network/network.h"
#include "plan/costs/cost_model.h"
#include "plan/costs/kernel_workspace.h"
#include "plan/costs/spare_memory.h"
#include "plan/job/job_spec.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

// Workspace of convolutions of layers [first, last). samples: in the largest micro-batch.
KernelWorkspace ConvolutionWorkspace(const Network& network, int first, int last, int64_t samples,
                                     const HostProfile& host);
// Workspace of all calls of the layers.
KernelWorkspace HostWorkspace(const Network& network, int first, int last, int64_t samples,
                              const HostProfile& host);
// Bytes of the layers' convolution weights in two packings: for forwards, and for input gradients.
int64_t PackedWeightBytes(const Network& network, int first, int last);

struct HostForecast {
  StageMemory memory;  // at the peak of a step or an evaluation, with all that `spare` allows
  SpareMemory spare;
};
struct HostQuery {
  int stage = 0, first_layer = 0, last_layer = 0;  // [first, last)
  int64_t limit = 0;                               // bytes; 0: none
  HostProfile host;
  const DecodingSizes* decoding = nullptr;  // of texts that are written; null: there are none
  int64_t batch_size = 0;  // decoding_memory.h, ComputedSamples; 0: training.batch_size
};
// Packed weights and rooms of further threads are dropped before a plan is refused. Packed weights
// are kept if they fit beside the rest and a twentieth, the margin for the forecast's error. The
// rest of the limit is for rooms. The planner and the stage both call this.
// evaluation: programs of an evaluation, if the job has some.
HostForecast ForecastOnHost(const JobSpec& spec, const Network& network,
                            std::span<const StageProgram> programs,
                            std::span<const StageProgram> evaluation, const HostQuery& query);
// Spare memory while layers are profiled, one at a time. Packings are kept and further threads have
// rooms, as in training, so that a convolution is timed as it will run. They have half of the
// memory that the largest layer leaves. The other half is for its made-up inputs.
SpareMemory SpareOfProfile(const JobSpec& spec, const Network& network, int64_t limit,
                           const HostProfile& host);

// The memory that a stage's process takes of its machine or container: the tensors, two snapshots
// of the stage's own state at most and, with K > 1, two of the stage before it
// (docs/ARCHITECTURE.md, "Recovery from memory"). Besides, the program with gRPC's buffers, and the
// library's memory of each thread. If the stage has a limit (--memory-limit-bytes,
// --memory-per-stage), tensors stay below the forecast. Without one the allocator keeps what was
// freed, and the process takes more. Not counted: the index of the data, some 100 bytes a file.
// before: the stage whose snapshots this one keeps; null with K = 1.
int64_t ProcessBytes(const StageMemory& own, const StageMemory* before, int threads);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_HOST_MEMORY_H_
