// Host memory: the memory that a stage on a processor takes beside that of its layers. devices/host
// describes the memory of a call; a stage needs the most that any of its calls takes. If there is
// room, the packed weights of all calls are kept from one micro-batch to the next.
// Forecasts are upper bounds.
// Units:     bytes.
// Errors:    none; sizes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_PLAN_COSTS_HOST_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_HOST_MEMORY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "devices/host/host_profile.h"
#include "network/network.h"
#include "plan/costs/cost_model.h"
#include "plan/costs/spare_memory.h"
#include "plan/job/job_spec.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

// The back end keeps rooms and the shared piece until a cell ends. Each has the size of its largest
// request. The two requests may come from different calls.
struct KernelWorkspace {
  int64_t room = 0;           // of each thread at work
  int64_t shared = 0;         // of the call
  int64_t kept = 0;           // of all calls, where there is room
  int64_t kept_constant = 0;  // besides, of weights that never change
};
// Workspace of all calls of layers [first, last), and of norms and updates. If the last layer is
// among them, the loss counts too. samples: of the micro-batch.
KernelWorkspace HostWorkspace(const Network& network, int first, int last, int64_t samples,
                              const HostProfile& host);

struct HostForecast {
  StageMemory memory;  // at the peak of a step or an evaluation, with all that `spare` allows
  SpareMemory spare;
};
struct HostQuery {
  int stage = 0;
  std::vector<LayerRange> cells;  // of the stage, ascending
  int64_t limit = 0;              // bytes; 0: none
  HostProfile host;
  const DecodingSizes* decoding = nullptr;  // of texts that are written; null: there are none
  int64_t batch_size = 0;  // decoding_memory.h, ComputedSamples; 0: training.batch_size
  CellPlacement placement = {};  // of the programs
};
// Packed weights and rooms of further threads are dropped before a plan is refused. Packed weights
// are kept if they fit beside the rest and a twentieth, the margin for the forecast's error. Those of
// linear maps in a job that writes are kept if they fit beside all that. The
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
// state: bytes of the training state (plan/costs/training_state.h). before: of the stage whose
// snapshots this one keeps; none with K = 1. links: to other stages.
int64_t ProcessBytes(const StageMemory& own, int64_t state, std::optional<int64_t> before, int links,
                     int threads);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_HOST_MEMORY_H_
