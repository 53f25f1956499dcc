#include "stage/executor/cell_run.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {

CellRun::CellRun(const StageExecutor::Parts& parts, size_t number)
    : parts_(parts),
      own_(parts.cells[number]),
      dtype_(ComputeDType(parts.network->precision)),
      wires_(own_.cell->wires()),
      target_weights_(*parts.network) {
  const CellTies& ties = own_.cell->ties().ties();
  const BoundaryPort::Parts port{.link = nullptr,
                                 .self = parts.stage,
                                 .cell = NamedCell(),
                                 .dtype = dtype_,
                                 .phases = parts.phases,
                                 .clock = parts.clock,
                                 .backend = parts.backend};
  if (own_.upstream != nullptr) {
    BoundaryPort::Parts up = port;
    up.link = own_.upstream;
    up.peer = own_.above;
    up.leads_down = false;
    up.outgoing = Types(wires_.sent_gradients);
    up.incoming = Types(wires_.received);
    up.tied_outgoing = GradientTypes(ties.sent_gradients);
    up.tied_incoming = ValueTypes(ties.received_values);
    upstream_.emplace(up);
  }
  if (own_.downstream != nullptr) {
    BoundaryPort::Parts down = port;
    down.link = own_.downstream;
    down.peer = own_.below;
    down.leads_down = true;
    down.outgoing = Types(wires_.sent);
    down.incoming = Types(wires_.received_gradients);
    down.tied_outgoing = ValueTypes(ties.sent_values);
    down.tied_incoming = GradientTypes(ties.received_gradients);
    downstream_.emplace(down);
  }
  for (const WireId id : wires_.loaded) loaded_names_.push_back(parts.network->input(id).name);
  target_name_ = {parts.network->input(parts.network->objective.targets).name};
}

void CellRun::Begin(const StepWork* work, int micro_batches) {
  work_ = work;
  in_flight_.assign(static_cast<size_t>(micro_batches), InFlight());
  objective_begun_ = false;
}

void CellRun::Drop() {
  in_flight_.clear();
  for (BoundaryPort* port : {upstream(), downstream()}) {
    if (port != nullptr) port->DropWaiting();
  }
}

absl::StatusOr<bool> CellRun::Receive(const Instruction& instruction) {
  const MicroBatchId id = instruction.micro_batch;
  if (!IsOfMicroBatch(instruction.op)) return ReceiveTied(instruction);
  const bool activation = instruction.op == Opcode::kReceiveActivation;
  InFlight& flight = At(id);
  ASSIGN_OR_RETURN(
      std::optional<BoundaryPort::Arrived> arrived,
      activation
          ? upstream_->TryReceive(MessageKind::kActivation, work_->fence, id, -1)
          : downstream_->TryReceive(MessageKind::kGradient, work_->fence, id, flight.binding));
  if (!arrived.has_value()) return false;
  if (activation) flight.binding = arrived->binding;
  (activation ? flight.received : flight.output_gradients) = std::move(arrived->tuple);
  return true;
}

absl::StatusOr<bool> CellRun::Send(const Instruction& instruction) {
  const MicroBatchId id = instruction.micro_batch;
  if (!IsOfMicroBatch(instruction.op)) return SendTied(instruction);
  InFlight& flight = At(id);
  if (instruction.op == Opcode::kSendActivation) {
    return downstream_->TrySend(MessageKind::kActivation, work_->fence, id, &flight.outputs,
                                flight.binding);
  }
  return upstream_->TrySend(MessageKind::kGradient, work_->fence, id, &flight.input_gradients,
                            flight.binding);
}

absl::StatusOr<bool> CellRun::SendTied(const Instruction& instruction) {
  const bool values = instruction.op == Opcode::kSendTiedValues;
  TiedExchange& ties = own_.cell->ties();
  Tensors tuple = values ? ties.ValuesToSend() : ties.GradientsToSend();
  CellRun* const here = values ? behind : before;
  if (here != nullptr) {
    TiedExchange& theirs = here->own_.cell->ties();
    values ? theirs.TakeValues(std::move(tuple)) : theirs.TakeGradients(std::move(tuple));
    ties.DropArrived();
    return true;
  }
  ASSIGN_OR_RETURN(const bool sent,
                   (values ? *downstream_ : *upstream_)
                       .TrySend(values ? MessageKind::kTiedValue : MessageKind::kTiedGradient,
                                work_->fence, instruction.micro_batch, &tuple));
  if (sent) ties.DropArrived();  // nothing else reads it
  return sent;
}

absl::StatusOr<bool> CellRun::ReceiveTied(const Instruction& instruction) {
  const bool values = instruction.op == Opcode::kReceiveTiedValues;
  if ((values ? before : behind) != nullptr) return true;  // the sender has handed it over
  BoundaryPort& port = values ? *upstream_ : *downstream_;
  ASSIGN_OR_RETURN(std::optional<BoundaryPort::Arrived> arrived,
                   port.TryReceive(values ? MessageKind::kTiedValue : MessageKind::kTiedGradient,
                                   work_->fence, instruction.micro_batch, 0));
  if (!arrived.has_value()) return false;
  TiedExchange& ties = own_.cell->ties();
  values ? ties.TakeValues(std::move(arrived->tuple))
         : ties.TakeGradients(std::move(arrived->tuple));
  return true;
}

absl::Status CellRun::Compute(const Instruction& instruction) {
  const MicroBatchId id = instruction.micro_batch;
  const auto enter = [&](Phase phase) { parts_.phases->Enter(phase, id, NamedCell()); };
  switch (instruction.op) {
    case Opcode::kLoadInput:
      enter(Phase::kDataWait);
      return LoadInput(id);
    case Opcode::kLoadTarget:
      enter(Phase::kDataWait);
      return LoadTarget(id);
    case Opcode::kForward:
      enter(Phase::kForward);
      return Forward(id);
    case Opcode::kRecompute:
      enter(Phase::kRecompute);
      return At(id).binding.samples == 0 ? absl::OkStatus() : own_.cell->Recompute(id);
    case Opcode::kLoss:
      enter(Phase::kBackward);
      return Loss(id);
    case Opcode::kBackward:
    case Opcode::kBackwardInput:
    case Opcode::kBackwardWeight:
      enter(Phase::kBackward);
      return Backward(id, instruction.op);
    case Opcode::kAddTiedGradients:
      parts_.phases->Enter(Phase::kOptimizer);
      own_.cell->ties().AddGradients();
      return absl::OkStatus();
    case Opcode::kReceiveActivation:
    case Opcode::kSendActivation:
    case Opcode::kReceiveGradient:
    case Opcode::kSendGradient:
    case Opcode::kReceiveTiedValues:
    case Opcode::kSendTiedValues:
    case Opcode::kReceiveTiedGradients:
    case Opcode::kSendTiedGradients:
      break;
  }
  CHECK(false) << FormatInstruction(instruction) << " does not compute";
  return absl::OkStatus();
}

ForwardContext CellRun::ContextOf(MicroBatchId id) const {
  return {.seed = parts_.seed,
          .step = work_->fence.step,
          .micro_batch = id,
          .sequences = in_flight_[id.value].binding.samples,
          .lengths = in_flight_[id.value].binding.lengths,
          .training = work_->training};
}

std::vector<ValueType> CellRun::Types(const std::vector<WireId>& of) const {
  std::vector<ValueType> types;
  for (const WireId id : of) types.push_back(parts_.network->wire(id).type);
  return types;
}

std::vector<ValueType> CellRun::ValueTypes(const std::vector<ParameterUse>& of) const {
  std::vector<ValueType> types;
  for (const ParameterUse& use : of) types.push_back(TypeOf(*parts_.network, use));
  return types;
}

std::vector<ValueType> CellRun::GradientTypes(const std::vector<ParameterUse>& of) const {
  std::vector<ValueType> types;
  for (const ParameterUse& use : of) {
    types.push_back({Element::kFloat32, Leading::kOne, SpecOf(*parts_.network, use).shape});
  }
  return types;
}

absl::StatusOr<Tensors> CellRun::Empty(const std::vector<WireId>& of) const {
  Tensors tuple;
  for (const ValueType& type : Types(of)) {
    ASSIGN_OR_RETURN(Tensor tensor,
                     MakeTensor(parts_.backend->allocator(), MemoryKind::kActivations,
                                ElementDType(type.element, dtype_), RuntimeShape(type, 0)));
    tuple.push_back(std::move(tensor));
  }
  return tuple;
}

absl::Status CellRun::Forward(MicroBatchId id) {
  InFlight& flight = At(id);
  Tensors inputs = std::exchange(flight.loaded, Tensors());
  for (Tensor& tensor : flight.received) inputs.push_back(std::move(tensor));
  flight.received.clear();
  if (flight.binding.samples == 0) {
    if (is_last()) return absl::OkStatus();
    ASSIGN_OR_RETURN(flight.outputs, Empty(wires_.sent));
  } else if (!work_->training) {
    ASSIGN_OR_RETURN(flight.outputs, own_.cell->Evaluate(std::move(inputs), ContextOf(id)));
  } else {
    ASSIGN_OR_RETURN(Tensors outputs, own_.cell->Forward(std::move(inputs), ContextOf(id),
                                                         KeepsStash(*work_->program, own_.id, id)));
    // The last cell's logits are asked of it when the loss comes, perhaps after a recompute.
    if (!is_last()) flight.outputs = std::move(outputs);
  }
  if (behind != nullptr) HandDown(id);
  return absl::OkStatus();
}

void CellRun::HandDown(MicroBatchId id) {
  InFlight& to = behind->At(id);
  to.binding = At(id).binding;
  to.received = std::exchange(At(id).outputs, Tensors());
}

absl::Status CellRun::Loss(MicroBatchId id) {
  InFlight& flight = At(id);
  if (flight.binding.samples == 0) return absl::OkStatus();
  Tensors outputs = std::exchange(flight.outputs, Tensors());  // of an evaluation
  ObjectiveRunner::Targets targets{std::exchange(flight.target, Tensor()),
                                   std::exchange(flight.weights, Tensor())};
  const auto look = [this, id](const Tensor& logits, const Tensor& of_logits) {
    if (parts_.on_output != nullptr) parts_.on_output(id, logits);
    return work_->observer == nullptr ? absl::OkStatus() : work_->observer(logits, of_logits);
  };
  if (!work_->training) {
    return own_.cell->EvaluateLoss(ContextOf(id), std::move(outputs), std::move(targets), look);
  }
  ASSIGN_OR_RETURN(flight.output_gradients, own_.cell->Loss(id, std::move(targets), look));
  return absl::OkStatus();
}

absl::Status CellRun::Backward(MicroBatchId id, Opcode op) {
  InFlight& flight = At(id);
  const bool empty = flight.binding.samples == 0;
  if (op == Opcode::kBackwardWeight) {
    return empty ? absl::OkStatus() : own_.cell->BackwardWeight(id);
  }
  Tensors gradients = std::exchange(flight.output_gradients, Tensors());
  if (empty) {
    ASSIGN_OR_RETURN(flight.input_gradients, Empty(wires_.sent_gradients));
  } else {
    ASSIGN_OR_RETURN(flight.input_gradients,
                     op == Opcode::kBackward ? own_.cell->Backward(id, std::move(gradients))
                                             : own_.cell->BackwardInput(id, std::move(gradients)));
  }
  if (before != nullptr) HandUp(id);
  return absl::OkStatus();
}

void CellRun::HandUp(MicroBatchId id) {
  before->At(id).output_gradients = std::exchange(At(id).input_gradients, Tensors());
}

void CellRun::SumLosses(StepReport* report) {
  const Objective& objective = parts_.network->objective;
  const std::vector<std::string>& names = objective.sums;
  ObjectiveRunner::Sums sums = own_.cell->objective()->TakeSums();
  report->has_loss = true;
  report->loss_sum = sums.named[0];
  report->terms = sums.named[1];
  for (size_t i = 2; i < names.size(); ++i) {
    report->measures.push_back({names[i], sums.named[i]});
  }
  if (work_->training && objective.auxiliary.valid()) {
    report->loss_sum += objective.auxiliary_weight * sums.auxiliary;
    report->measures.push_back({kAuxiliaryLoss, sums.auxiliary});
  }
  report->class_counts = std::move(sums.classes);
  for (const InFlight& flight : in_flight_) {
    if (flight.binding.samples <= 0) continue;
    report->targets += TypeElements(objective.target_type, flight.binding);
    report->padding.positions += flight.padding.positions;
    report->padding.padded += flight.padding.padded;
  }
  report->finite = report->finite && std::isfinite(report->loss_sum);
}

}  // namespace stagecoach
