// CellRun: one cell's part of a pass under way: its micro-batches between two instructions, its ports
// to the cells in front and behind, and what its instructions compute. If such a cell is on the same
// stage, tuples go to it in memory. Private to stage/executor.
// Ownership, threads, units: as StageExecutor.
#ifndef STAGECOACH_STAGE_EXECUTOR_CELL_RUN_H_
#define STAGECOACH_STAGE_EXECUTOR_CELL_RUN_H_

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

class CellRun {
 public:
  // parts: the stage's; `number`: which of its cells. The executor owns all of them and links those
  // that are neighbours.
  CellRun(const StageExecutor::Parts& parts, size_t number);

  void Begin(const StepWork* work, int micro_batches);
  void Drop();  // micro-batches, after an error or an abort
  // What only the last cell has.
  void SumLosses(StepReport* report);

  absl::StatusOr<bool> Receive(const Instruction& instruction);  // true: done, false: blocked
  absl::StatusOr<bool> Send(const Instruction& instruction);
  absl::Status Compute(const Instruction& instruction);

  CellId id() const { return own_.id; }
  // For people: invalid if the stage has no other.
  CellId NamedCell() const { return parts_.cells.size() > 1 ? own_.id : CellId(); }
  bool is_last() const { return own_.id.value + 1 == parts_.cells_of_pipeline; }
  Cell& cell() const { return *own_.cell; }
  // A port of a link of this cell; null: there is none.
  BoundaryPort* upstream() { return upstream_.has_value() ? &*upstream_ : nullptr; }
  BoundaryPort* downstream() { return downstream_.has_value() ? &*downstream_ : nullptr; }
  // The cells in front of it and behind it on the same stage; null: they are elsewhere.
  CellRun* before = nullptr;
  CellRun* behind = nullptr;

 private:
  // A step's data of one micro-batch between two instructions.
  struct InFlight {
    Binding binding{-1};               // -1: not known yet
    PaddingCount padding;              // of the source's arrays, from in or t on
    Tensors loaded, received;          // from in and <a to F
    Tensors outputs;                   // from F to >a; in an evaluation of the last cell to L
    std::optional<HostBatch> weighed;  // source of the weights, from the first t to its own t
    Tensor target, weights;            // from t to L; weights where targets have some
    Tensors output_gradients;          // from L or <g to B or I
    Tensors input_gradients;           // from B or I to >g
  };
  InFlight& At(MicroBatchId id) { return in_flight_[static_cast<size_t>(id.value)]; }
  const InFlight& At(MicroBatchId id) const { return in_flight_[static_cast<size_t>(id.value)]; }

  // cell_run.cc
  absl::StatusOr<bool> ReceiveTied(const Instruction& instruction);
  absl::StatusOr<bool> SendTied(const Instruction& instruction);
  absl::Status Forward(MicroBatchId id);
  absl::Status Loss(MicroBatchId id);
  absl::Status Backward(MicroBatchId id, Opcode op);
  void HandDown(MicroBatchId id);
  void HandUp(MicroBatchId id);
  ForwardContext ContextOf(MicroBatchId id) const;
  absl::StatusOr<Tensors> Empty(const std::vector<WireId>& of) const;
  std::vector<ValueType> Types(const std::vector<WireId>& of) const;
  std::vector<ValueType> ValueTypes(const std::vector<ParameterUse>& of) const;
  std::vector<ValueType> GradientTypes(const std::vector<ParameterUse>& of) const;

  // cell_run_data.cc
  absl::Status LoadInput(MicroBatchId id);
  absl::Status LoadTarget(MicroBatchId id);
  absl::StatusOr<Tensors> LoadTargets(MicroBatchId id);
  absl::StatusOr<Tensor> LoadWeights(MicroBatchId id);
  // The inputs that weights follow from, read once: masks are slow to decode.
  absl::StatusOr<const HostBatch*> Weighed(MicroBatchId id);
  absl::StatusOr<HostBatch> Read(MicroBatchId id, std::span<const std::string> names) const;
  absl::StatusOr<double> LossScale(const Lengths& lengths);
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

  const StageExecutor::Parts& parts_;
  const StageExecutor::CellParts& own_;
  const DType dtype_;  // of activations
  const CellWires& wires_;
  const TargetWeights target_weights_;
  std::vector<std::string> loaded_names_, target_name_;  // inputs of the network
  std::optional<BoundaryPort> upstream_, downstream_;
  const StepWork* work_ = nullptr;
  std::vector<InFlight> in_flight_;
  bool objective_begun_ = false;  // at the first target
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_CELL_RUN_H_
