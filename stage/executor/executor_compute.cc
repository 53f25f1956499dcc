// What the instructions of a program compute, and what a step comes to.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/current_work.h"
#include "stage/executor/executor_state.h"

namespace stagecoach {

ForwardContext StageExecutor::State::ContextOf(MicroBatchId id) const {
  return {.seed = parts.seed,
          .step = work->fence.step,
          .micro_batch = id,
          .sequences = in_flight[id.value].binding.samples,
          .lengths = in_flight[id.value].binding.lengths,
          .training = work->training};
}

absl::Status StageExecutor::State::Compute(const Instruction& instruction) {
  const MicroBatchId id = instruction.micro_batch;
  switch (instruction.op) {
    case Opcode::kLoadInput:
      parts.phases->Enter(Phase::kDataWait, id);
      return LoadInput(id);
    case Opcode::kLoadTarget:
      parts.phases->Enter(Phase::kDataWait, id);
      return LoadTarget(id);
    case Opcode::kForward:
      parts.phases->Enter(Phase::kForward, id);
      return Forward(id);
    case Opcode::kRecompute:
      parts.phases->Enter(Phase::kRecompute, id);
      return At(id).binding.samples == 0 ? absl::OkStatus() : parts.cell->Recompute(id);
    case Opcode::kLoss:
      parts.phases->Enter(Phase::kBackward, id);
      return Loss(id);
    case Opcode::kBackward:
    case Opcode::kBackwardInput:
    case Opcode::kBackwardWeight:
      parts.phases->Enter(Phase::kBackward, id);
      return Backward(id, instruction.op);
    case Opcode::kAddTiedGradients:
      parts.phases->Enter(Phase::kOptimizer);
      parts.cell->ties().AddGradients();
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

absl::Status StageExecutor::State::ComputeMarked(const Instruction& instruction) {
  if (instruction.op == Opcode::kLoadInput || instruction.op == Opcode::kLoadTarget) {
    return Compute(instruction);
  }
  parts.backend->MarkTime();
  const absl::Status status = Compute(instruction);
  parts.backend->MarkTime();
  marked.push_back({parts.phases->current(), instruction.micro_batch});
  return status;
}

void StageExecutor::State::ResolveTimes() {
  if (!has_device_clock) return;
  const std::vector<int64_t> times = parts.backend->TakeTimes();
  const bool known = times.size() == 2 * marked.size() + 1;
  for (size_t i = 0; known && i < marked.size(); ++i) {
    marked[i].begin_nanos = begin_nanos + times[2 * i + 1];
    marked[i].end_nanos = begin_nanos + times[2 * i + 2];
  }
  parts.phases->Resolve(known ? std::span<const PhaseInterval>(marked)
                              : std::span<const PhaseInterval>());
}

std::vector<ValueType> StageExecutor::State::Types(const std::vector<WireId>& of) const {
  std::vector<ValueType> types;
  for (const WireId id : of) types.push_back(parts.network->wire(id).type);
  return types;
}

std::vector<ValueType> StageExecutor::State::ValueTypes(const std::vector<ParameterUse>& of) const {
  std::vector<ValueType> types;
  for (const ParameterUse& use : of) types.push_back(TypeOf(*parts.network, use));
  return types;
}

std::vector<ValueType> StageExecutor::State::GradientTypes(
    const std::vector<ParameterUse>& of) const {
  std::vector<ValueType> types;
  for (const ParameterUse& use : of) {
    types.push_back({Element::kFloat32, Leading::kOne, SpecOf(*parts.network, use).shape});
  }
  return types;
}

absl::StatusOr<Tensor> StageExecutor::State::ToDevice(std::span<const std::byte> array,
                                                      const ValueType& type,
                                                      const Binding& binding) const {
  const DType source = type.element == Element::kIds ? DType::kI32 : DType::kF32;
  Backend& backend = *parts.backend;
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend.link_allocator(), MemoryKind::kActivations,
                                             source, RuntimeShape(type, binding)));
  CHECK_EQ(static_cast<int64_t>(array.size()), tensor.bytes()) << "bytes of " << FormatType(type);
  if (CopiesForLinks(backend)) {
    // The back end holds them until they have been copied, so nobody waits.
    std::memcpy(tensor.raw(), array.data(), array.size());
    ASSIGN_OR_RETURN(tensor, backend.CopyFromLink(tensor));
  } else {
    backend.CopyFromHost(array, tensor);
    RETURN_IF_ERROR(backend.Synchronize());
  }
  const DType wanted = ElementDType(type.element, dtype);
  if (wanted == source) return tensor;
  ASSIGN_OR_RETURN(Tensor converted, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                                wanted, tensor.shape()));
  backend.Convert(tensor, converted);
  return converted;
}

absl::StatusOr<Tensors> StageExecutor::State::Empty(const std::vector<WireId>& of) const {
  Tensors tuple;
  for (const ValueType& type : Types(of)) {
    ASSIGN_OR_RETURN(Tensor tensor,
                     MakeTensor(parts.backend->allocator(), MemoryKind::kActivations,
                                ElementDType(type.element, dtype), RuntimeShape(type, 0)));
    tuple.push_back(std::move(tensor));
  }
  return tuple;
}

absl::StatusOr<HostBatch> StageExecutor::State::Read(MicroBatchId id,
                                                     std::span<const std::string> names) const {
  absl::StatusOr<HostBatch> batch = work->training
                                        ? parts.data->Train(work->fence.step, id, names)
                                        : parts.data->Evaluation(work->evaluation_batch, id, names);
  if (!batch.ok()) return DataError(batch.status());
  return batch;
}

absl::StatusOr<Tensors> StageExecutor::State::Load(MicroBatchId id,
                                                   std::span<const std::string> names,
                                                   const std::vector<ValueType>& types) {
  ASSIGN_OR_RETURN(const HostBatch batch, Read(id, names));
  return Take(id, batch, 0, types);
}

// The scale of the loss is that of the first micro-batch's lengths.
absl::Status StageExecutor::State::CheckLengths(MicroBatchId id) const {
  const Binding &first = in_flight.front().binding, &binding = in_flight[id.value].binding;
  if (first.samples <= 0 || binding.samples <= 0) return absl::OkStatus();
  for (const Length length : kNamedLengths) {
    const int64_t wanted = first.lengths.of(length), found = binding.lengths.of(length);
    if (wanted == found) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("micro-batch ", id.value, " has ", LengthName(length), " ", found,
                     ", the first one ", wanted, ": they must be alike in a mini-batch"));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::State::Bind(MicroBatchId id, const HostBatch& batch) {
  Binding& binding = At(id).binding;
  const auto check = [this](int64_t arrived, int64_t read, const char* what) {
    if (arrived == read) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(arrived, " ", what, " arrived, the data set of stage ", parts.stage.value,
                     " has ", read, "; all stages must read the same file"));
  };
  if (binding.samples < 0) binding.samples = batch.samples;
  At(id).padding = batch.padding;
  RETURN_IF_ERROR(check(binding.samples, batch.samples, "samples"));
  for (const Length length : kNamedLengths) {
    const int64_t arrived = binding.lengths.of(length), read = batch.lengths.of(length);
    if (arrived == 0) binding.lengths.Set(length, read);
    if (arrived == 0 || batch.samples == 0) continue;
    RETURN_IF_ERROR(check(arrived, read, LengthName(length)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensors> StageExecutor::State::Take(MicroBatchId id, const HostBatch& batch,
                                                   int first, const std::vector<ValueType>& types) {
  RETURN_IF_ERROR(Bind(id, batch));
  const Binding& binding = At(id).binding;
  Tensors tuple;
  for (size_t i = 0; i < types.size() && binding.samples > 0; ++i) {
    const auto& array = batch.arrays[static_cast<size_t>(first) + i];
    ASSIGN_OR_RETURN(Tensor tensor, ToDevice(array, types[i], binding));
    tuple.push_back(std::move(tensor));
  }
  return tuple;
}

absl::Status StageExecutor::State::LoadInput(MicroBatchId id) {
  ASSIGN_OR_RETURN(Tensors loaded, Load(id, loaded_names, Types(wires.loaded)));
  At(id).loaded = std::move(loaded);
  return absl::OkStatus();
}

absl::Status StageExecutor::State::LoadTarget(MicroBatchId id) {
  ASSIGN_OR_RETURN(Tensors loaded, LoadTargets(id));
  RETURN_IF_ERROR(CheckLengths(id));
  if (!objective_begun) {
    ASSIGN_OR_RETURN(const double scale, LossScale(At(id).binding.lengths));
    parts.cell->objective()->Begin(static_cast<int>(in_flight.size()), scale);
    objective_begun = true;
  }
  if (!loaded.empty()) {
    At(id).target = std::move(loaded.front());
    if (parts.network->objective.weighted()) {
      ASSIGN_OR_RETURN(At(id).weights, LoadWeights(id));
    }
  }
  At(id).weighed.reset();
  return absl::OkStatus();
}

absl::StatusOr<Tensors> StageExecutor::State::LoadTargets(MicroBatchId id) {
  const std::vector types{parts.network->objective.target_type};
  const std::vector<std::string>& names = target_weights.names();
  const auto found = std::find(names.begin(), names.end(), target_name.front());
  if (found == names.end()) return Load(id, target_name, types);
  ASSIGN_OR_RETURN(const HostBatch* const batch, Weighed(id));
  return Take(id, *batch, static_cast<int>(found - names.begin()), types);
}

absl::StatusOr<Tensor> StageExecutor::State::LoadWeights(MicroBatchId id) {
  ASSIGN_OR_RETURN(const HostBatch* const batch, Weighed(id));
  const std::vector<float> weights = target_weights.Of(*batch);
  return ToDevice(std::as_bytes(std::span(weights)), parts.network->objective.loaded().back(),
                  {batch->samples, batch->lengths});
}

absl::StatusOr<const HostBatch*> StageExecutor::State::Weighed(MicroBatchId id) {
  std::optional<HostBatch>& batch = At(id).weighed;
  if (!batch.has_value()) {
    ASSIGN_OR_RETURN(batch, Read(id, target_weights.names()));
  }
  return &*batch;
}

absl::Status StageExecutor::State::Forward(MicroBatchId id) {
  InFlight& flight = At(id);
  Tensors inputs = std::exchange(flight.loaded, Tensors());
  for (Tensor& tensor : flight.received) inputs.push_back(std::move(tensor));
  flight.received.clear();
  if (flight.binding.samples == 0) {
    if (last_stage()) return absl::OkStatus();
    ASSIGN_OR_RETURN(flight.outputs, Empty(wires.sent));
    return absl::OkStatus();
  }
  if (!work->training) {
    ASSIGN_OR_RETURN(flight.outputs, parts.cell->Evaluate(std::move(inputs), ContextOf(id)));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensors outputs, parts.cell->Forward(std::move(inputs), ContextOf(id),
                                                        KeepsStash(*work->program, id)));
  // The last stage's logits are asked of the cell when the loss comes, perhaps after a recompute.
  if (!last_stage()) flight.outputs = std::move(outputs);
  return absl::OkStatus();
}

// The gradient is that of the mean over the mini-batch, for every M: its weights are added target
// after target, as if M were 1. The work's scale is for the largest lengths; all micro-batches of a
// mini-batch have the same.
absl::StatusOr<double> StageExecutor::State::LossScale(const Lengths& lengths) {
  if (!work->training) return work->loss_scale;
  if (target_weights.names().empty()) {
    const ValueType& type = parts.network->objective.target_type;
    if (!type.shape.has_lengths()) return work->loss_scale;
    return work->loss_scale * static_cast<double>(TypeElements(type, 1)) /
           static_cast<double>(TypeElements(type, {1, lengths}));
  }
  double total = 0;
  for (size_t i = 0; i < in_flight.size(); ++i) {
    const MicroBatchId id(static_cast<int32_t>(i));
    ASSIGN_OR_RETURN(const HostBatch* const batch, Weighed(id));
    for (const float weight : target_weights.Of(*batch)) total += weight;
  }
  return total == 0 ? 0.0 : 1.0 / (total * static_cast<double>(target_weights.terms()));
}

absl::Status StageExecutor::State::Loss(MicroBatchId id) {
  InFlight& flight = At(id);
  if (flight.binding.samples == 0) return absl::OkStatus();
  Tensors outputs = std::exchange(flight.outputs, Tensors());  // of an evaluation
  ObjectiveRunner::Targets targets{std::exchange(flight.target, Tensor()),
                                   std::exchange(flight.weights, Tensor())};
  const auto look = [this, id](const Tensor& logits, const Tensor& of_logits) {
    if (parts.on_output != nullptr) parts.on_output(id, logits);
    return work->observer == nullptr ? absl::OkStatus() : work->observer(logits, of_logits);
  };
  if (!work->training) {
    return parts.cell->EvaluateLoss(ContextOf(id), std::move(outputs), std::move(targets), look);
  }
  ASSIGN_OR_RETURN(flight.output_gradients, parts.cell->Loss(id, std::move(targets), look));
  return absl::OkStatus();
}

absl::Status StageExecutor::State::Backward(MicroBatchId id, Opcode op) {
  InFlight& flight = At(id);
  const bool empty = flight.binding.samples == 0;
  if (op == Opcode::kBackwardWeight) {
    return empty ? absl::OkStatus() : parts.cell->BackwardWeight(id);
  }
  Tensors gradients = std::exchange(flight.output_gradients, Tensors());
  if (empty) {
    ASSIGN_OR_RETURN(flight.input_gradients, Empty(wires.sent_gradients));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(flight.input_gradients,
                   op == Opcode::kBackward ? parts.cell->Backward(id, std::move(gradients))
                                           : parts.cell->BackwardInput(id, std::move(gradients)));
  return absl::OkStatus();
}

void StageExecutor::State::SumLosses(StepReport* report) {
  const Objective& objective = parts.network->objective;
  const std::vector<std::string>& names = objective.sums;
  ObjectiveRunner::Sums sums = parts.cell->objective()->TakeSums();
  report->has_loss = true;
  report->loss_sum = sums.named[0];
  report->terms = sums.named[1];
  for (size_t i = 2; i < names.size(); ++i) {
    report->measures.push_back({names[i], sums.named[i]});
  }
  if (work->training && objective.auxiliary.valid()) {
    report->loss_sum += objective.auxiliary_weight * sums.auxiliary;
    report->measures.push_back({kAuxiliaryLoss, sums.auxiliary});
  }
  report->class_counts = std::move(sums.classes);
  for (const InFlight& flight : in_flight) {
    if (flight.binding.samples <= 0) continue;
    report->targets += TypeElements(objective.target_type, flight.binding);
    report->padding.positions += flight.padding.positions;
    report->padding.padded += flight.padding.padded;
  }
  report->finite = report->finite && std::isfinite(report->loss_sum);
}

absl::Status StageExecutor::State::Finish() {
  NoteInstruction("step_end");
  parts.phases->Enter(Phase::kOptimizer);
  StepReport done;
  done.fence = work->fence;
  if (last_stage()) SumLosses(&done);
  if (work->training) {
    ASSIGN_OR_RETURN(done.layer_squared_norms, parts.cell->LayerSquaredGradientNorms());
    for (double norm : done.layer_squared_norms) done.finite = done.finite && std::isfinite(norm);
  }
  RETURN_IF_ERROR(parts.backend->Synchronize());
  ResolveTimes();
  std::array<int64_t, kPhases> nanos = parts.phases->TotalNanos();
  int64_t total = 0;
  for (int i = 0; i < kPhases; ++i) total += nanos[i] -= nanos_before[i];
  done.phases = ToSeconds(nanos);
  done.step_seconds = static_cast<double>(total) * 1e-9;
  in_flight.clear();
  parts.cell->ties().DropArrived();
  work.reset();
  parts.backend->EndLinkCopies();
  report = std::move(done);
  return absl::OkStatus();
}

}  // namespace stagecoach
