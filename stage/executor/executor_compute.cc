// What the instructions of a program compute, and what a step comes to.
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "stage/executor/executor_state.h"

namespace stagecoach {

ForwardContext StageExecutor::State::ContextOf(MicroBatchId id) const {
  return {.seed = parts.seed,
          .step = work->fence.step,
          .micro_batch = id,
          .sequences = in_flight[id.value].sequences,
          .training = work->training};
}

absl::Status StageExecutor::State::Compute(const Instruction& instruction) {
  const MicroBatchId id = instruction.micro_batch;
  switch (instruction.op) {
    case Op::kLoadInput:
      parts.phases->Enter(Phase::kDataWait, id);
      return LoadInput(id);
    case Op::kLoadTarget:
      parts.phases->Enter(Phase::kDataWait, id);
      return LoadTarget(id);
    case Op::kForward:
      parts.phases->Enter(Phase::kForward, id);
      return Forward(id);
    case Op::kRecompute:
      parts.phases->Enter(Phase::kRecompute, id);
      return At(id).sequences == 0 ? absl::OkStatus() : parts.cell->Recompute(id);
    case Op::kLoss:
      parts.phases->Enter(Phase::kBackward, id);
      return Loss(id);
    case Op::kBackward:
    case Op::kBackwardInput:
    case Op::kBackwardWeight:
      parts.phases->Enter(Phase::kBackward, id);
      return Backward(id, instruction.op);
    case Op::kReceiveActivation:
    case Op::kSendActivation:
    case Op::kReceiveGradient:
    case Op::kSendGradient:
      break;
  }
  CHECK(false) << FormatInstruction(instruction) << " does not compute";
  return absl::OkStatus();
}

absl::Status StageExecutor::State::ComputeMarked(const Instruction& instruction) {
  if (instruction.op == Op::kLoadInput || instruction.op == Op::kLoadTarget) {
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

TokenBatch StageExecutor::State::Tokens(MicroBatchId id) const {
  return work->training ? parts.data->Train(work->fence.step, id)
                        : parts.data->Evaluation(work->evaluation_batch, id);
}

absl::StatusOr<Tensor> StageExecutor::State::ToDevice(const std::vector<int32_t>& tokens) const {
  ASSIGN_OR_RETURN(Tensor tensor,
                   MakeTensor(parts.backend->link_allocator(), MemoryKind::kActivations,
                              DType::kI32, Shape{static_cast<int64_t>(tokens.size())}));
  if (CopiesForLinks(*parts.backend)) {
    // The back end holds them until they have been copied, so nobody waits.
    std::memcpy(tensor.raw(), tokens.data(), static_cast<size_t>(tensor.bytes()));
    return parts.backend->CopyFromLink(tensor);
  }
  parts.backend->CopyFromHost(std::as_bytes(std::span(tokens)), tensor);
  RETURN_IF_ERROR(parts.backend->Synchronize());
  return tensor;
}

absl::StatusOr<Tensor> StageExecutor::State::Empty(int64_t width) const {
  return MakeTensor(parts.backend->allocator(), MemoryKind::kActivations, parts.dtype,
                    Shape{0, width});
}

absl::Status StageExecutor::State::LoadInput(MicroBatchId id) {
  const TokenBatch batch = Tokens(id);
  At(id).sequences = batch.sequences;
  if (batch.sequences == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(At(id).input, ToDevice(batch.inputs));
  return absl::OkStatus();
}

absl::Status StageExecutor::State::LoadTarget(MicroBatchId id) {
  const TokenBatch batch = Tokens(id);
  if (batch.sequences != At(id).sequences) {
    return absl::FailedPreconditionError(
        absl::StrCat(At(id).sequences, " sequences arrived, the data set of the last stage has ",
                     batch.sequences, "; first and last stage must read the same file"));
  }
  if (batch.sequences == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(At(id).target, ToDevice(batch.targets));
  return absl::OkStatus();
}

absl::Status StageExecutor::State::Forward(MicroBatchId id) {
  InFlight& flight = At(id);
  if (flight.sequences == 0) {
    flight.input.Reset();
    if (last_stage()) return absl::OkStatus();
    ASSIGN_OR_RETURN(flight.output, Empty(parts.width_out));
    return absl::OkStatus();
  }
  Tensors inputs{std::exchange(flight.input, Tensor())};
  if (!work->training) {
    ASSIGN_OR_RETURN(Tensors outputs, parts.cell->Evaluate(std::move(inputs), ContextOf(id)));
    flight.output = std::move(outputs.front());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensors outputs, parts.cell->Forward(std::move(inputs), ContextOf(id),
                                                        KeepsStash(*work->program, id)));
  // The last stage's logits are asked of the cell when the loss comes, perhaps after a recompute.
  if (!last_stage()) flight.output = std::move(outputs.front());
  return absl::OkStatus();
}

absl::Status StageExecutor::State::Loss(MicroBatchId id) {
  InFlight& flight = At(id);
  if (flight.sequences == 0) return absl::OkStatus();
  if (!losses.valid()) {
    ASSIGN_OR_RETURN(losses,
                     MakeTensor(parts.backend->allocator(), MemoryKind::kWorkspace, DType::kF64,
                                Shape{static_cast<int64_t>(in_flight.size())}));
  }
  flight.loss = losses.Slice(id.value, Shape{1});
  CrossEntropyArgs args;
  args.logits = work->training ? parts.cell->outputs(id).front() : std::move(flight.output);
  args.targets = std::exchange(flight.target, Tensor());
  args.scale = static_cast<float>(work->loss_scale);
  args.loss = flight.loss;
  if (work->training) args.d_logits = args.logits;  // in place: nobody reads the logits again
  parts.backend->CrossEntropy(args);
  flight.output_gradient = std::move(args.d_logits);
  flight.output.Reset();
  return absl::OkStatus();
}

absl::Status StageExecutor::State::Backward(MicroBatchId id, Op op) {
  InFlight& flight = At(id);
  const bool empty = flight.sequences == 0;
  if (op == Op::kBackwardWeight) {
    return empty ? absl::OkStatus() : parts.cell->BackwardWeight(id);
  }
  Tensors gradients{std::exchange(flight.output_gradient, Tensor())};
  if (empty) {
    if (!upstream.has_value()) return absl::OkStatus();
    ASSIGN_OR_RETURN(flight.input_gradient, Empty(parts.width_in));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensors input_gradients,
                   op == Op::kBackward ? parts.cell->Backward(id, std::move(gradients))
                                       : parts.cell->BackwardInput(id, std::move(gradients)));
  if (upstream.has_value()) flight.input_gradient = std::move(input_gradients.front());
  return absl::OkStatus();
}

void StageExecutor::State::SumLosses(StepReport* report) {
  // A micro-batch without sequences has no loss and leaves its slot as it was.
  std::vector<double> values(in_flight.size());
  if (losses.valid()) {
    parts.backend->CopyToHost(losses, std::as_writable_bytes(std::span(values)));
  }
  // Ascending micro-batches in double, whatever order the program computed them in.
  for (size_t i = 0; i < in_flight.size(); ++i) {
    if (!in_flight[i].loss.valid()) continue;
    report->loss_sum += values[i];
    report->tokens += in_flight[i].sequences * parts.context;
  }
  report->has_loss = true;
  report->finite = report->finite && std::isfinite(report->loss_sum);
}

absl::Status StageExecutor::State::Finish() {
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
  losses.Reset();
  work.reset();
  parts.backend->EndLinkCopies();
  report = std::move(done);
  return absl::OkStatus();
}

}  // namespace stagecoach
