// StageExecutor::State: a step under way. Private to stage/executor*.cc: executor.cc decides what runs
// next and moves messages, executor_compute.cc runs what computes and sums up the step.
// Ownership, threads, units: as StageExecutor.
#ifndef STAGECOACH_STAGE_EXECUTOR_EXECUTOR_STATE_H_
#define STAGECOACH_STAGE_EXECUTOR_EXECUTOR_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/executor/boundary_port.h"
#include "stage/executor/executor.h"

namespace stagecoach {

struct StageExecutor::State {
  // What a step holds of one micro-batch between two instructions.
  struct InFlight {
    int64_t sequences = 0;
    Tensor input;            // from in or <a to F
    Tensor output;           // from F to >a; in an evaluation on the last stage to L
    Tensor target;           // from t to L
    Tensor output_gradient;  // from L or <g to B or I
    Tensor input_gradient;   // from B or I to >g
    Tensor loss;             // its slot of the losses; from L to the end of the step
  };

  explicit State(const Parts& p) : parts(p) {
    if (p.upstream != nullptr) {
      upstream.emplace(BoundaryPort::Parts{p.upstream, p.stage, StageId(p.stage.value - 1),
                                           p.width_in, p.context, p.dtype, p.phases, p.clock,
                                           p.backend});
    }
    if (p.downstream != nullptr) {
      downstream.emplace(BoundaryPort::Parts{p.downstream, p.stage, StageId(p.stage.value + 1),
                                             p.width_out, p.context, p.dtype, p.phases, p.clock,
                                             p.backend});
    }
  }

  const Parts parts;
  std::optional<BoundaryPort> upstream, downstream;

  std::optional<StepWork> work;
  size_t next = 0;  // instruction
  bool blocked = false;
  std::vector<InFlight> in_flight;
  Tensor losses;  // F64, one a micro-batch: read back by one copy. From the first L to the end
  std::array<int64_t, kPhases> nanos_before{};
  std::optional<StepReport> report;
  uint64_t instructions_done = 0;
  bool has_device_clock = false;  // its first mark of a step is where the step begins
  int64_t begin_nanos = 0;
  std::vector<PhaseInterval> marked;  // what was computed between two marks each, without times

  bool last_stage() const { return parts.stage.value + 1 == parts.stages; }
  const Instruction& current() const { return work->program->instructions[next]; }
  InFlight& At(MicroBatchId id) { return in_flight[id.value]; }

  // executor.cc. True: done, false: blocked.
  absl::StatusOr<bool> Execute(const Instruction& instruction);
  absl::StatusOr<bool> ReceiveActivation(MicroBatchId id);
  absl::StatusOr<bool> ReceiveGradient(MicroBatchId id);
  absl::StatusOr<bool> SendWaiting();  // true: a message left
  const BoundaryPort* Unsent() const;  // a port with messages that wait, or null
  absl::Status LinkStatus() const;
  std::string Where() const;
  std::string Where(MicroBatchId id) const;

  // executor_compute.cc
  absl::Status Compute(const Instruction& instruction);
  absl::Status ComputeMarked(const Instruction& instruction);
  void ResolveTimes();
  absl::Status LoadInput(MicroBatchId id);
  absl::Status LoadTarget(MicroBatchId id);
  absl::Status Forward(MicroBatchId id);
  absl::Status Loss(MicroBatchId id);
  absl::Status Backward(MicroBatchId id, Op op);
  absl::Status Finish();
  void SumLosses(StepReport* report);
  ForwardContext ContextOf(MicroBatchId id) const;
  TokenBatch Tokens(MicroBatchId id) const;
  absl::StatusOr<Tensor> ToDevice(const std::vector<int32_t>& tokens) const;
  absl::StatusOr<Tensor> Empty(int64_t width) const;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_EXECUTOR_STATE_H_
