#include "stage/executor/executor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "base/threads/current_work.h"
#include "plan/schedules/pipeline_walk.h"
#include "stage/executor/executor_state.h"

namespace stagecoach {
namespace {

MicroBatchId CountMicroBatches(const StageProgram& program) {
  MicroBatchId most;
  for (const Instruction& instruction : program.instructions) {
    most = std::max(most, instruction.micro_batch);
  }
  return MicroBatchId(most.value + 1);
}

// For people, when the process dies of it; in the order of Opcode.
constexpr const char* kInstructionNames[kOpcodes] = {
    "load_input",          "receive_activation",  "forward",
    "send_activation",     "load_target",         "loss",
    "receive_gradient",    "recompute",           "backward",
    "backward_input",      "backward_weight",     "send_gradient",
    "receive_tied_values", "send_tied_values",    "receive_tied_gradients",
    "add_tied_gradients",  "send_tied_gradients",
};

MessageKind KindOf(const LinkEnd& end) {
  if (end.tied) return end.activations ? MessageKind::kTiedValue : MessageKind::kTiedGradient;
  return end.activations ? MessageKind::kActivation : MessageKind::kGradient;
}

}  // namespace

std::string StageExecutor::State::Where() const {
  return absl::StrCat("stage ", parts.stage.value, ", ", work->fence.ToString());
}

std::string StageExecutor::State::Where(MicroBatchId id) const {
  if (!id.valid()) return Where();
  return absl::StrCat("stage ", parts.stage.value, ", micro-batch ", id.value, ", ",
                      work->fence.ToString());
}

absl::StatusOr<bool> StageExecutor::State::Execute(const Instruction& instruction) {
  const MicroBatchId id = instruction.micro_batch;
  const Fence& fence = work->fence;
  NoteInstruction(
      work->training ? kInstructionNames[static_cast<size_t>(instruction.op)] : "evaluation", id);
  switch (instruction.op) {
    case Opcode::kReceiveActivation:
      return ReceiveActivation(id);
    case Opcode::kReceiveGradient:
      return ReceiveGradient(id);
    case Opcode::kSendActivation:
      return downstream->TrySend(MessageKind::kActivation, fence, id, &At(id).outputs,
                                 At(id).binding);
    case Opcode::kSendGradient:
      return upstream->TrySend(MessageKind::kGradient, fence, id, &At(id).input_gradients,
                               At(id).binding);
    case Opcode::kReceiveTiedValues:
    case Opcode::kReceiveTiedGradients:
      return ReceiveTied(instruction);
    case Opcode::kSendTiedValues:
    case Opcode::kSendTiedGradients:
      return SendTied(instruction);
    case Opcode::kLoadInput:
    case Opcode::kForward:
    case Opcode::kLoadTarget:
    case Opcode::kLoss:
    case Opcode::kRecompute:
    case Opcode::kBackward:
    case Opcode::kBackwardInput:
    case Opcode::kBackwardWeight:
    case Opcode::kAddTiedGradients:
      break;
  }
  RETURN_IF_ERROR(has_device_clock ? ComputeMarked(instruction) : Compute(instruction));
  return true;
}

absl::StatusOr<bool> StageExecutor::State::ReceiveActivation(MicroBatchId id) {
  ASSIGN_OR_RETURN(std::optional<BoundaryPort::Arrived> arrived,
                   upstream->TryReceive(MessageKind::kActivation, work->fence, id, -1));
  if (!arrived.has_value()) return false;
  At(id).binding = arrived->binding;
  At(id).received = std::move(arrived->tuple);
  return true;
}

absl::StatusOr<bool> StageExecutor::State::ReceiveGradient(MicroBatchId id) {
  ASSIGN_OR_RETURN(std::optional<BoundaryPort::Arrived> arrived,
                   downstream->TryReceive(MessageKind::kGradient, work->fence, id, At(id).binding));
  if (!arrived.has_value()) return false;
  At(id).output_gradients = std::move(arrived->tuple);
  return true;
}

absl::StatusOr<bool> StageExecutor::State::SendTied(const Instruction& instruction) {
  const bool values = instruction.op == Opcode::kSendTiedValues;
  TiedExchange& ties = parts.cell->ties();
  Tensors tuple = values ? ties.ValuesToSend() : ties.GradientsToSend();
  ASSIGN_OR_RETURN(const bool sent,
                   (values ? *downstream : *upstream)
                       .TrySend(values ? MessageKind::kTiedValue : MessageKind::kTiedGradient,
                                work->fence, instruction.micro_batch, &tuple));
  if (sent) ties.DropArrived();  // nothing else reads it
  return sent;
}

absl::StatusOr<bool> StageExecutor::State::ReceiveTied(const Instruction& instruction) {
  const bool values = instruction.op == Opcode::kReceiveTiedValues;
  BoundaryPort& port = values ? *upstream : *downstream;
  ASSIGN_OR_RETURN(std::optional<BoundaryPort::Arrived> arrived,
                   port.TryReceive(values ? MessageKind::kTiedValue : MessageKind::kTiedGradient,
                                   work->fence, instruction.micro_batch, 0));
  if (!arrived.has_value()) return false;
  TiedExchange& ties = parts.cell->ties();
  values ? ties.TakeValues(std::move(arrived->tuple))
         : ties.TakeGradients(std::move(arrived->tuple));
  return true;
}

absl::StatusOr<bool> StageExecutor::State::SendWaiting() {
  bool sent = false;
  for (auto* port : {&upstream, &downstream}) {
    if (!port->has_value() || !(*port)->waiting()) continue;
    const MicroBatchId first = (*port)->waiting_micro_batch();
    ASSIGN_OR_RETURN(const bool some, AnnotateAt((*port)->SendWaiting(), Where(first)));
    sent = sent || some;
  }
  if (sent) ++instructions_done;  // what a send had left undone
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

StageExecutor::StageExecutor(const Parts& parts) {
  CHECK(parts.cell != nullptr && parts.network != nullptr);
  state_ = std::make_unique<State>(parts);
  CHECK(parts.backend != nullptr && parts.phases != nullptr && parts.clock != nullptr);
  CHECK_EQ(parts.upstream == nullptr, parts.stage.value == 0) << "upstream of the first stage";
  CHECK_EQ(parts.downstream == nullptr, state_->last_stage()) << "downstream of the last stage";
  const bool reads_data = !state_->wires.loaded.empty() || state_->last_stage();
  CHECK(parts.data != nullptr || !reads_data) << "a stage that reads data";
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
  state_->in_flight.assign(CountMicroBatches(*work.program).value, State::InFlight());
  state_->objective_begun = false;
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
        ran_all ? state.Unsent()->waiting_micro_batch() : State::MicroBatchOf(state.current());
    bool proceeded = false;
    if (ran_all) {
      state.Unsent()->BookWaiting();
    } else {
      ASSIGN_OR_RETURN(proceeded, AnnotateAt(state.Execute(state.current()), state.Where(id)));
    }
    state.blocked = !proceeded;
    if (!proceeded) {
      // A broken neighbour on the other side ends the step too: what is waited for may never come.
      RETURN_IF_ERROR(AnnotateAt(state.LinkStatus(), state.Where(id)));
      return sent ? Progress::kAdvanced : Progress::kBlocked;
    }
    ++state.next;
    ++state.instructions_done;
  }
  state.blocked = false;
  const std::string where = state.Where();
  RETURN_IF_ERROR(AnnotateAt(state.Finish(), where));
  return Progress::kFinished;
}

std::string StageExecutor::WaitingFor() const {
  if (!state_->work.has_value() || !state_->blocked) return "";
  const Fence& fence = state_->work->fence;
  if (state_->next == state_->work->program->instructions.size()) {
    const BoundaryPort* const port = state_->Unsent();
    return port == nullptr
               ? ""
               : port->Waiting(port->waiting_kind(), fence, port->waiting_micro_batch());
  }
  const auto [op, id] = state_->current();
  const LinkEnd end = *LinkEndOf(op, state_->parts.stage.value);
  const bool up = end.boundary < state_->parts.stage.value;
  return (up ? state_->upstream : state_->downstream)->Waiting(KindOf(end), fence, id);
}

MicroBatchId StageExecutor::current_micro_batch() const {
  const bool running =
      state_->work.has_value() && state_->next < state_->work->program->instructions.size();
  return running ? State::MicroBatchOf(state_->current()) : MicroBatchId();
}

StepReport StageExecutor::TakeReport() {
  CHECK(state_->report.has_value()) << "the step has not finished";
  return *std::exchange(state_->report, std::nullopt);
}

void StageExecutor::Abandon() {
  state_->work.reset();
  state_->report.reset();
  state_->in_flight.clear();
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
