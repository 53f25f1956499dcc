#include "stage/executor/executor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "base/threads/current_work.h"
#include "plan/schedules/pipeline_walk.h"
#include "stage/executor/cell_run.h"

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

struct StageExecutor::State {
  explicit State(const Parts& p) : parts(p) {
    for (size_t i = 0; i < parts.cells.size(); ++i) {
      cells.push_back(std::make_unique<CellRun>(parts, i));
      if (i == 0 || parts.cells[i - 1].id.value + 1 != parts.cells[i].id.value) continue;
      cells[i]->before = cells[i - 1].get();
      cells[i - 1]->behind = cells[i].get();
    }
    for (const auto& cell : cells) {
      for (BoundaryPort* port : {cell->upstream(), cell->downstream()}) {
        if (port != nullptr) ports.push_back(port);
      }
    }
  }

  const Parts parts;
  std::vector<std::unique_ptr<CellRun>> cells;  // ascending
  std::vector<BoundaryPort*> ports;             // of all of them

  std::optional<StepWork> work;
  size_t next = 0;  // instruction
  bool blocked = false;
  std::array<int64_t, kPhases> nanos_before{};
  std::optional<StepReport> report;
  uint64_t instructions_done = 0;
  bool has_device_clock = false;  // a step begins at its first mark
  int64_t begin_nanos = 0;
  std::vector<PhaseInterval> marked;  // the phase between each two marks, without times

  const Instruction& current() const { return work->program->instructions[next]; }
  // Invalid for an instruction of the whole step.
  static MicroBatchId MicroBatchOf(const Instruction& instruction) {
    return IsOfMicroBatch(instruction.op) ? instruction.micro_batch : MicroBatchId();
  }
  CellRun& At(CellId id);

  absl::StatusOr<bool> Execute(const Instruction& instruction);  // true: done, false: blocked
  absl::Status ComputeMarked(const Instruction& instruction);
  void ResolveTimes();
  absl::Status Finish();
  absl::StatusOr<bool> SendWaiting();  // true: a message left
  const BoundaryPort* Unsent() const;  // a port with messages that wait, or null
  absl::Status LinkStatus() const;
  std::string Where() const;
  std::string Where(CellId cell, MicroBatchId id) const;  // invalid ids: of the whole step
};

CellRun& StageExecutor::State::At(CellId id) {
  for (const auto& cell : cells) {
    if (cell->id() == id) return *cell;
  }
  CHECK(false) << "stage " << parts.stage.value << " has no cell " << id.value;
  return *cells.front();
}

std::string StageExecutor::State::Where() const {
  return absl::StrCat("stage ", parts.stage.value, ", ", work->fence.ToString());
}

std::string StageExecutor::State::Where(CellId cell, MicroBatchId id) const {
  if (!id.valid()) return Where();
  const bool several = cells.size() > 1 && cell.valid();
  return absl::StrCat("stage ", parts.stage.value,
                      several ? absl::StrCat(", cell ", cell.value) : "", ", micro-batch ",
                      id.value, ", ", work->fence.ToString());
}

absl::StatusOr<bool> StageExecutor::State::Execute(const Instruction& instruction) {
  NoteInstruction(
      work->training ? kInstructionNames[static_cast<size_t>(instruction.op)] : "evaluation",
      instruction.micro_batch);
  if (const std::optional<LinkEnd> end = LinkEndOf(instruction); end.has_value()) {
    CellRun& cell = At(instruction.cell);
    return end->sends ? cell.Send(instruction) : cell.Receive(instruction);
  }
  RETURN_IF_ERROR(has_device_clock ? ComputeMarked(instruction)
                                   : At(instruction.cell).Compute(instruction));
  return true;
}

absl::Status StageExecutor::State::ComputeMarked(const Instruction& instruction) {
  CellRun& cell = At(instruction.cell);
  if (instruction.op == Opcode::kLoadInput || instruction.op == Opcode::kLoadTarget) {
    return cell.Compute(instruction);
  }
  parts.backend->MarkTime();
  const absl::Status status = cell.Compute(instruction);
  parts.backend->MarkTime();
  marked.push_back({.phase = parts.phases->current(),
                    .micro_batch = instruction.micro_batch,
                    .cell = cell.NamedCell()});
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

absl::Status StageExecutor::State::Finish() {
  NoteInstruction("step_end");
  parts.phases->Enter(Phase::kOptimizer);
  StepReport done;
  done.fence = work->fence;
  for (const auto& cell : cells) {
    if (cell->is_last()) cell->SumLosses(&done);
  }
  for (const auto& cell : cells) {
    if (!work->training) break;
    ASSIGN_OR_RETURN(const std::vector<double> norms, cell->cell().LayerSquaredGradientNorms());
    for (const double norm : norms) {
      done.finite = done.finite && std::isfinite(norm);
      done.layer_squared_norms.push_back(norm);
    }
  }
  RETURN_IF_ERROR(parts.backend->Synchronize());
  ResolveTimes();
  std::array<int64_t, kPhases> nanos = parts.phases->TotalNanos();
  int64_t total = 0;
  for (int i = 0; i < kPhases; ++i) total += nanos[i] -= nanos_before[i];
  done.phases = ToSeconds(nanos);
  done.step_seconds = static_cast<double>(total) * 1e-9;
  for (const auto& cell : cells) {
    cell->Drop();
    cell->cell().ties().DropArrived();
  }
  work.reset();
  parts.backend->EndLinkCopies();
  report = std::move(done);
  return absl::OkStatus();
}

absl::StatusOr<bool> StageExecutor::State::SendWaiting() {
  bool sent = false;
  for (BoundaryPort* const port : ports) {
    if (!port->waiting()) continue;
    const MicroBatchId first = port->waiting_micro_batch();
    ASSIGN_OR_RETURN(const bool some, AnnotateAt(port->SendWaiting(), Where(port->cell(), first)));
    sent = sent || some;
  }
  if (sent) ++instructions_done;  // what a send had left undone
  return sent;
}

const BoundaryPort* StageExecutor::State::Unsent() const {
  for (const BoundaryPort* const port : ports) {
    if (port->waiting()) return port;
  }
  return nullptr;
}

absl::Status StageExecutor::State::LinkStatus() const {
  for (const BoundaryPort* const port : ports) RETURN_IF_ERROR(port->status());
  return absl::OkStatus();
}

StageExecutor::StageExecutor(const Parts& parts) {
  CHECK(!parts.cells.empty() && parts.network != nullptr);
  CHECK(parts.backend != nullptr && parts.phases != nullptr && parts.clock != nullptr);
  state_ = std::make_unique<State>(parts);
  for (const auto& cell : state_->cells) {
    const bool first = cell->id().value == 0;
    CHECK_EQ(cell->upstream() == nullptr, first || cell->before != nullptr) << "link to the front";
    CHECK_EQ(cell->downstream() == nullptr, cell->is_last() || cell->behind != nullptr)
        << "link to behind";
    const bool reads_data = !cell->cell().wires().loaded.empty() || cell->is_last();
    CHECK(parts.data != nullptr || !reads_data) << "a stage that reads data";
  }
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
  const int micro_batches = CountMicroBatches(*work.program).value;
  for (const auto& cell : state_->cells) cell->Begin(&*state_->work, micro_batches);
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
    const CellId cell = ran_all ? state.Unsent()->cell() : state.current().cell;
    bool proceeded = false;
    if (ran_all) {
      state.Unsent()->BookWaiting();
    } else {
      ASSIGN_OR_RETURN(proceeded,
                       AnnotateAt(state.Execute(state.current()), state.Where(cell, id)));
    }
    state.blocked = !proceeded;
    if (!proceeded) {
      // A broken neighbour on the other side ends the step too: what is waited for may never come.
      RETURN_IF_ERROR(AnnotateAt(state.LinkStatus(), state.Where(cell, id)));
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
  const Instruction& instruction = state_->current();
  const LinkEnd end = *LinkEndOf(instruction);
  CellRun& cell = state_->At(instruction.cell);
  return (end.edge < instruction.cell.value ? cell.upstream() : cell.downstream())
      ->Waiting(KindOf(end), fence, instruction.micro_batch);
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
  state_->blocked = false;
  for (const auto& cell : state_->cells) cell->Drop();
  state_->parts.backend->EndLinkCopies();
  state_->parts.phases->Resolve({});
  for (const auto& cell : state_->cells) cell->cell().DropAllMicroBatches();
}

uint64_t StageExecutor::instructions_done() const { return state_->instructions_done; }

uint64_t StageExecutor::stale_messages() const {
  uint64_t count = 0;
  for (const BoundaryPort* const port : state_->ports) count += port->stale_messages();
  return count;
}

}  // namespace stagecoach
