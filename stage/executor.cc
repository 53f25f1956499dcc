#include "stage/executor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "stage/boundary_port.h"

namespace stagecoach {
namespace {

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

MicroBatchId CountMicroBatches(const StageProgram& program) {
  MicroBatchId most;
  for (const Instruction& instruction : program.instructions) {
    most = std::max(most, instruction.micro_batch);
  }
  return MicroBatchId(most.value + 1);
}

}  // namespace

struct StageExecutor::State {
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
  std::string Where(MicroBatchId id) const;
  ForwardContext ContextOf(MicroBatchId id) const;

  // True: done, false: blocked.
  absl::StatusOr<bool> Execute(const Instruction& instruction);
  absl::StatusOr<bool> ReceiveActivation(MicroBatchId id);
  absl::StatusOr<bool> ReceiveGradient(MicroBatchId id);
  absl::Status Compute(const Instruction& instruction);
  absl::Status ComputeMarked(const Instruction& instruction);
  void ResolveTimes();
  absl::Status LoadInput(MicroBatchId id);
  absl::Status LoadTarget(MicroBatchId id);
  absl::Status Forward(MicroBatchId id);
  absl::Status Loss(MicroBatchId id);
  absl::Status Backward(MicroBatchId id, Op op);
  absl::StatusOr<bool> SendWaiting();  // true: a message left
  const BoundaryPort* Unsent() const;  // a port with messages that wait, or null
  absl::Status LinkStatus() const;
  absl::Status Finish();
  void SumLosses(StepReport* report);

  TokenBatch Tokens(MicroBatchId id) const;
  absl::StatusOr<Tensor> ToDevice(const std::vector<int32_t>& tokens) const;
  absl::StatusOr<Tensor> Empty(int64_t width) const;
};

std::string StageExecutor::State::Where(MicroBatchId id) const {
  return absl::StrCat("stage ", parts.stage.value, ", micro-batch ", id.value, ", ",
                      work->fence.ToString());
}

ForwardContext StageExecutor::State::ContextOf(MicroBatchId id) const {
  return {.seed = parts.seed,
          .step = work->fence.step,
          .micro_batch = id,
          .sequences = in_flight[id.value].sequences,
          .training = work->training};
}

absl::StatusOr<bool> StageExecutor::State::Execute(const Instruction& instruction) {
  const MicroBatchId id = instruction.micro_batch;
  switch (instruction.op) {
    case Op::kReceiveActivation:
      return ReceiveActivation(id);
    case Op::kReceiveGradient:
      return ReceiveGradient(id);
    case Op::kSendActivation:
      return downstream->TrySend(work->fence, id, &At(id).output);
    case Op::kSendGradient:
      return upstream->TrySend(work->fence, id, &At(id).input_gradient);
    default:
      break;
  }
  RETURN_IF_ERROR(has_device_clock ? ComputeMarked(instruction) : Compute(instruction));
  return true;
}

absl::StatusOr<bool> StageExecutor::State::ReceiveActivation(MicroBatchId id) {
  ASSIGN_OR_RETURN(std::optional<Tensor> tensor, upstream->TryReceive(work->fence, id, -1));
  if (!tensor.has_value()) return false;
  At(id).sequences = tensor->shape()[0] / parts.context;
  At(id).input = *std::move(tensor);
  return true;
}

absl::StatusOr<bool> StageExecutor::State::ReceiveGradient(MicroBatchId id) {
  ASSIGN_OR_RETURN(std::optional<Tensor> tensor,
                   downstream->TryReceive(work->fence, id, At(id).sequences * parts.context));
  if (!tensor.has_value()) return false;
  At(id).output_gradient = *std::move(tensor);
  return true;
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
    default:
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

absl::StatusOr<bool> StageExecutor::State::SendWaiting() {
  bool sent = false;
  for (auto* port : {&upstream, &downstream}) {
    if (!port->has_value() || !(*port)->waiting()) continue;
    const MicroBatchId first = (*port)->waiting_micro_batch();
    ASSIGN_OR_RETURN(const bool some, Annotate((*port)->SendWaiting(), Where(first)));
    sent = sent || some;
  }
  if (sent) ++instructions_done;  // a heartbeat as well: what a send left undone is done
  return sent;
}

const BoundaryPort* StageExecutor::State::Unsent() const {
  for (const auto* port : {&upstream, &downstream}) {
    if (port->has_value() && (*port)->waiting()) return &**port;
  }
  return nullptr;
}

absl::Status StageExecutor::State::LinkStatus() const {
  if (upstream.has_value()) RETURN_IF_ERROR(upstream->status());
  if (downstream.has_value()) RETURN_IF_ERROR(downstream->status());
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

StageExecutor::StageExecutor(const Parts& parts) : state_(std::make_unique<State>(parts)) {
  CHECK(parts.cell != nullptr && parts.backend != nullptr && parts.phases != nullptr &&
        parts.clock != nullptr);
  CHECK_EQ(parts.upstream == nullptr, parts.stage.value == 0) << "upstream of the first stage";
  CHECK_EQ(parts.downstream == nullptr, state_->last_stage()) << "downstream of the last stage";
  const bool reads_data = parts.stage.value == 0 || state_->last_stage();
  CHECK(parts.data != nullptr || !reads_data) << "first and last stage read data";
  CHECK(parts.context > 0) << "tokens of a sequence";
}

StageExecutor::~StageExecutor() = default;

void StageExecutor::BeginStep(const StepWork& work) {
  CHECK(!state_->work.has_value()) << "a step is under way";
  CHECK(work.program != nullptr && work.program->stage == state_->parts.stage)
      << "a program of another stage";
  state_->work = work;
  state_->next = 0;
  state_->blocked = false;
  state_->report.reset();
  state_->in_flight.assign(CountMicroBatches(*work.program).value, InFlight());
  state_->nanos_before = state_->parts.phases->TotalNanos();
  state_->marked.clear();
  state_->parts.backend->TakeTimes();  // of a step that was given up
  state_->has_device_clock = state_->parts.backend->MarkTime();
  if (!state_->has_device_clock) return;
  state_->begin_nanos = state_->parts.clock->MonotonicNanos();
  state_->parts.phases->Defer();
}

absl::StatusOr<Progress> StageExecutor::Advance(int instructions) {
  State& state = *state_;
  CHECK(state.work.has_value()) << "no step has begun";
  const size_t end = state.work->program->instructions.size();
  for (int done = 0;; ++done) {
    ASSIGN_OR_RETURN(const bool sent, state.SendWaiting());
    const bool ran_all = state.next == end;
    if (ran_all && state.Unsent() == nullptr) break;
    if (done == instructions) return Progress::kAdvanced;
    const MicroBatchId id =
        ran_all ? state.Unsent()->waiting_micro_batch() : state.current().micro_batch;
    bool proceeded = false;
    if (ran_all) {
      state.Unsent()->BookWaiting();
    } else {
      ASSIGN_OR_RETURN(proceeded, Annotate(state.Execute(state.current()), state.Where(id)));
    }
    state.blocked = !proceeded;
    if (!proceeded) {
      // A broken neighbour on the other side ends the step too: what is waited for may never come.
      RETURN_IF_ERROR(Annotate(state.LinkStatus(), state.Where(id)));
      return sent ? Progress::kAdvanced : Progress::kBlocked;
    }
    ++state.next;
    ++state.instructions_done;
  }
  state.blocked = false;
  RETURN_IF_ERROR(Annotate(state.Finish(), absl::StrCat("stage ", state.parts.stage.value)));
  return Progress::kFinished;
}

std::string StageExecutor::WaitingFor() const {
  if (!state_->work.has_value() || !state_->blocked) return "";
  const Fence& fence = state_->work->fence;
  if (state_->next == state_->work->program->instructions.size()) {
    const BoundaryPort* const port = state_->Unsent();
    return port == nullptr ? "" : port->Waiting(fence, port->waiting_micro_batch(), true);
  }
  const auto [op, id] = state_->current();
  const bool sending = op == Op::kSendActivation || op == Op::kSendGradient;
  const bool up = op == Op::kReceiveActivation || op == Op::kSendGradient;
  return (up ? state_->upstream : state_->downstream)->Waiting(fence, id, sending);
}

MicroBatchId StageExecutor::current_micro_batch() const {
  const bool running =
      state_->work.has_value() && state_->next < state_->work->program->instructions.size();
  return running ? state_->current().micro_batch : MicroBatchId();
}

StepReport StageExecutor::TakeReport() {
  CHECK(state_->report.has_value()) << "the step has not finished";
  return *std::exchange(state_->report, std::nullopt);
}

void StageExecutor::Abandon() {
  state_->work.reset();
  state_->report.reset();
  state_->in_flight.clear();
  state_->losses.Reset();
  state_->blocked = false;
  for (auto* port : {&state_->upstream, &state_->downstream}) {
    if (port->has_value()) (*port)->DropWaiting();
  }
  state_->parts.backend->EndLinkCopies();
  state_->parts.phases->Resolve({});
  state_->parts.cell->DropAllMicroBatches();
}

uint64_t StageExecutor::instructions_done() const { return state_->instructions_done; }

uint64_t StageExecutor::stale_messages() const {
  uint64_t count = 0;
  if (state_->upstream.has_value()) count += state_->upstream->stale_messages();
  if (state_->downstream.has_value()) count += state_->downstream->stale_messages();
  return count;
}

}  // namespace stagecoach
