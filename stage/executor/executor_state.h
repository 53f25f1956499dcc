// StageExecutor::State: a step under way. Private to stage/executor*.cc: executor.cc chooses the
// next instruction and moves messages, executor_compute.cc computes and sums up the step.
// Ownership, threads, units: as StageExecutor.
#ifndef STAGECOACH_STAGE_EXECUTOR_EXECUTOR_STATE_H_
#define STAGECOACH_STAGE_EXECUTOR_EXECUTOR_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/executor/boundary_port.h"
#include "stage/executor/executor.h"
#include "stage/executor/target_weights.h"

namespace stagecoach {

struct StageExecutor::State {
  // A step's data of one micro-batch between two instructions.
  struct InFlight {
    Binding binding{-1};               // -1: not known yet
    PaddingCount padding;              // of the source's arrays, from in or t on
    Tensors loaded, received;          // from in and <a to F
    Tensors outputs;                   // from F to >a; in an evaluation on the last stage to L
    std::optional<HostBatch> weighed;  // source of the weights, from the first t to its own t
    Tensor target, weights;            // from t to L; weights where targets have some
    Tensors output_gradients;          // from L or <g to B or I
    Tensors input_gradients;           // from B or I to >g
  };

  explicit State(const Parts& p)
      : parts(p),
        dtype(ComputeDType(p.network->precision)),
        wires(p.cell->wires()),
        target_weights(*p.network) {
    const StageId above(p.stage.value - 1), below(p.stage.value + 1);
    const CellTies& ties = p.cell->ties().ties();
    if (p.upstream != nullptr) {
      upstream.emplace(BoundaryPort::Parts{.link = p.upstream,
                                           .self = p.stage,
                                           .peer = above,
                                           .outgoing = Types(wires.sent_gradients),
                                           .incoming = Types(wires.received),
                                           .tied_outgoing = GradientTypes(ties.sent_gradients),
                                           .tied_incoming = ValueTypes(ties.received_values),
                                           .dtype = dtype,
                                           .phases = p.phases,
                                           .clock = p.clock,
                                           .backend = p.backend});
    }
    if (p.downstream != nullptr) {
      downstream.emplace(
          BoundaryPort::Parts{.link = p.downstream,
                              .self = p.stage,
                              .peer = below,
                              .outgoing = Types(wires.sent),
                              .incoming = Types(wires.received_gradients),
                              .tied_outgoing = ValueTypes(ties.sent_values),
                              .tied_incoming = GradientTypes(ties.received_gradients),
                              .dtype = dtype,
                              .phases = p.phases,
                              .clock = p.clock,
                              .backend = p.backend});
    }
    for (const WireId id : wires.loaded) loaded_names.push_back(p.network->input(id).name);
    target_name = {p.network->input(p.network->objective.targets).name};
  }

  const Parts parts;
  const DType dtype;  // of activations
  const CellWires& wires;
  const TargetWeights target_weights;
  std::vector<std::string> loaded_names, target_name;  // inputs of the network
  std::optional<BoundaryPort> upstream, downstream;

  std::optional<StepWork> work;
  size_t next = 0;  // instruction
  bool blocked = false;
  bool objective_begun = false;  // at the first target
  std::vector<InFlight> in_flight;
  std::array<int64_t, kPhases> nanos_before{};
  std::optional<StepReport> report;
  uint64_t instructions_done = 0;
  bool has_device_clock = false;  // a step begins at its first mark
  int64_t begin_nanos = 0;
  std::vector<PhaseInterval> marked;  // the phase between each two marks, without times

  bool last_stage() const { return parts.stage.value + 1 == parts.stages; }
  const Instruction& current() const { return work->program->instructions[next]; }
  // Invalid for an instruction of the whole step.
  static MicroBatchId MicroBatchOf(const Instruction& instruction) {
    return IsOfMicroBatch(instruction.op) ? instruction.micro_batch : MicroBatchId();
  }
  InFlight& At(MicroBatchId id) { return in_flight[id.value]; }

  // executor.cc. True: done, false: blocked.
  absl::StatusOr<bool> Execute(const Instruction& instruction);
  absl::StatusOr<bool> ReceiveActivation(MicroBatchId id);
  absl::StatusOr<bool> ReceiveGradient(MicroBatchId id);
  absl::StatusOr<bool> ReceiveTied(const Instruction& instruction);
  absl::StatusOr<bool> SendTied(const Instruction& instruction);
  absl::StatusOr<bool> SendWaiting();  // true: a message left
  const BoundaryPort* Unsent() const;  // a port with messages that wait, or null
  absl::Status LinkStatus() const;
  std::string Where() const;
  std::string Where(MicroBatchId id) const;  // invalid id: of the whole step

  // executor_compute.cc
  absl::Status Compute(const Instruction& instruction);
  absl::Status ComputeMarked(const Instruction& instruction);
  void ResolveTimes();
  absl::Status LoadInput(MicroBatchId id);
  absl::Status LoadTarget(MicroBatchId id);
  absl::Status Forward(MicroBatchId id);
  absl::Status Loss(MicroBatchId id);
  absl::Status Backward(MicroBatchId id, Opcode op);
  absl::Status Finish();
  absl::StatusOr<Tensors> LoadTargets(MicroBatchId id);
  absl::StatusOr<Tensor> LoadWeights(MicroBatchId id);
  // The inputs that weights follow from, read once: masks are slow to decode.
  absl::StatusOr<const HostBatch*> Weighed(MicroBatchId id);
  absl::StatusOr<HostBatch> Read(MicroBatchId id, std::span<const std::string> names) const;
  absl::StatusOr<double> LossScale(const Lengths& lengths);
  void SumLosses(StepReport* report);
  ForwardContext ContextOf(MicroBatchId id) const;
  // Inputs of the data source by name. FAILED_PRECONDITION: other samples than arrived were read.
  absl::StatusOr<Tensors> Load(MicroBatchId id, std::span<const std::string> names,
                               const std::vector<ValueType>& types);
  // Notes the sizes of the batch, or compares them with what arrived.
  absl::Status Bind(MicroBatchId id, const HostBatch& batch);
  absl::Status CheckLengths(MicroBatchId id) const;
  // Arrays of a batch from number `first` on, of these types.
  absl::StatusOr<Tensors> Take(MicroBatchId id, const HostBatch& batch, int first,
                               const std::vector<ValueType>& types);
  absl::StatusOr<Tensor> ToDevice(std::span<const std::byte> array, const ValueType& type,
                                  const Binding& binding) const;
  absl::StatusOr<Tensors> Empty(const std::vector<WireId>& of) const;
  std::vector<ValueType> Types(const std::vector<WireId>& of) const;
  std::vector<ValueType> ValueTypes(const std::vector<ParameterUse>& of) const;
  std::vector<ValueType> GradientTypes(const std::vector<ParameterUse>& of) const;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_EXECUTOR_STATE_H_
