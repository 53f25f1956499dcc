// ValidateSchedule: first every program by itself (the life of each micro-batch in each cell), then
// both ends of each edge against each other, then all together on links of limited room. Messages of
// tied parameters stand first or last in every program, so their order on a link is right if each
// program is.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "plan/schedules/pipeline_walk.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_mark.h"

namespace stagecoach {
namespace {

absl::Status Bad(const StageProgram& program, size_t position, bool with_cell,
                 const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("schedule: stage ", program.stage.value, ": ", what,
                                                 "\n",
                                                 MarkInstruction(program, position, with_cell)));
}

// A cell of the stage, and what lives of every micro-batch in it.
struct CellCheck {
  struct MicroBatch {
    std::array<bool, kOpcodes> done{};
    bool recomputed = false;  // an R of it stands in the program
    bool stash = false;
    bool logits = false;  // in the last cell
    bool has(Opcode op) const { return done[static_cast<size_t>(op)]; }
    bool has_backward() const { return has(Opcode::kBackward) || has(Opcode::kBackwardInput); }
  };

  CellCheck(const ScheduleOptions& options, int number)
      : cell(number),
        first(number == 0),
        last(options.IsLast(number)),
        loads(options.Loads(number)),
        receives(options.ReceivesActivation(number)),
        sends(options.SendsActivation(number)),
        backward(options.HasBackward(number)),
        receives_gradient(options.ReceivesGradient(number)),
        sends_gradient(options.SendsGradient(number)),
        gives_gradient(options.GivesGradient(number)),
        batches(static_cast<size_t>(options.micro_batches)) {}

  int cell;
  bool first, last, loads, receives, sends, backward, receives_gradient, sends_gradient,
      gives_gradient;
  std::vector<MicroBatch> batches;
  std::array<bool, kOpcodes> tied_done{};
  int forwards = 0, losses = 0, input_parts = 0, weight_parts = 0;  // the next ones
};

// Follows one stage's program and knows what lives.
class ProgramCheck {
 public:
  ProgramCheck(const ScheduleOptions& options, const PipelineLimits& limits,
               const StageProgram& program)
      : options_(options),
        limits_(limits),
        program_(program),
        training_(!options.forward_only),
        with_cell_(!options.placement.empty()) {
    for (const int cell : options.CellsOfStage(program.stage.value)) {
      cells_.emplace_back(options, cell);
    }
    for (const Instruction& instruction : program.instructions) {
      CellCheck* const cell = CellOf(instruction.cell);
      if (cell != nullptr && instruction.op == Opcode::kRecompute &&
          InRange(instruction.micro_batch)) {
        cell->batches[instruction.micro_batch.value].recomputed = true;
      }
    }
  }

  absl::Status Run() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const std::string problem = Step(program_.instructions[i]);
      if (!problem.empty()) {
        return Bad(program_, i, with_cell_,
                   absl::StrCat(Text(program_.instructions[i]), ": ", problem));
      }
    }
    return CheckComplete();
  }

 private:
  using MicroBatch = CellCheck::MicroBatch;

  std::string Text(const Instruction& instruction) const {
    return FormatInstruction(instruction, with_cell_);
  }
  CellCheck* CellOf(CellId id) {
    for (CellCheck& cell : cells_) {
      if (cell.cell == id.value) return &cell;
    }
    return nullptr;
  }
  bool InRange(MicroBatchId id) const { return id.value >= 0 && id.value < options_.micro_batches; }

  // Empty if the instruction may stand here, else why not.
  std::string Step(const Instruction& instruction) {
    const int m = instruction.micro_batch.value;
    if (static_cast<size_t>(instruction.op) >= kOpcodes) return "no such instruction";
    CellCheck* const cell = CellOf(instruction.cell);
    if (cell == nullptr) return NotHere(instruction.cell);
    if (!IsOfMicroBatch(instruction.op)) return StepTied(*cell, instruction.op);
    if (turn_ > TurnOfMicroBatches()) return "after the gradients of tied parameters";
    turn_ = TurnOfMicroBatches();
    if (!InRange(instruction.micro_batch)) {
      return absl::StrCat("micro-batches count from 0 to ", options_.micro_batches - 1);
    }
    MicroBatch& batch = cell->batches[m];
    if (batch.has(instruction.op)) return "a second time";
    std::string problem = WrongPlace(*cell, instruction.op);
    if (problem.empty()) problem = Missing(*cell, instruction.op, m);
    if (problem.empty()) problem = WrongOrder(*cell, instruction.op, m);
    if (!problem.empty()) return problem;
    batch.done[static_cast<size_t>(instruction.op)] = true;
    return Keep(*cell, instruction.op, batch);
  }

  std::string NotHere(CellId cell) const {
    if (cell.value < 0 || cell.value >= options_.cells()) {
      return absl::StrCat("cells count from 0 to ", options_.cells() - 1);
    }
    return absl::StrCat("cell ", cell.value, " is on stage ", options_.StageOfCell(cell.value));
  }

  // Values of tied parameters come first, cell by cell down the network. Their gradients come last,
  // up the network. Each cell has them in the order of Opcode.
  int TurnOfMicroBatches() const { return 2 * static_cast<int>(cells_.size()) + 1; }
  std::string StepTied(CellCheck& cell, Opcode op) {
    if (!options_.HasTied(op, cell.cell)) {
      return with_cell_ ? "no tied parameter asks for it in this cell"
                        : "no tied parameter asks for it on this stage";
    }
    const bool values = op < Opcode::kReceiveTiedGradients;
    const int place = static_cast<int>(&cell - cells_.data());
    const int behind = values ? static_cast<int>(op) - static_cast<int>(Opcode::kReceiveTiedValues)
                              : static_cast<int>(op) - static_cast<int>(Opcode::kReceiveTiedGradients);
    const int turn = values ? 2 * place + behind + 1
                            : TurnOfMicroBatches() + 1 +
                                  3 * (static_cast<int>(cells_.size()) - 1 - place) + behind;
    if (turn == turn_) return "a second time";
    if (turn < turn_) {
      return values && turn_ == TurnOfMicroBatches() ? "values come first" : "out of order";
    }
    turn_ = turn;
    cell.tied_done[static_cast<size_t>(op)] = true;
    return "";
  }

  // Instructions that this cell or this kind of schedule does not have.
  std::string WrongPlace(const CellCheck& cell, Opcode op) const {
    const bool before = cell.first || cell.receives, behind = cell.last || cell.sends;
    switch (op) {
      case Opcode::kLoadInput:
        return cell.loads ? "" : "this stage's layers read nothing of the data source";
      case Opcode::kReceiveActivation:
        if (!before) return OnThisStage(cell.cell - 1);
        return cell.first ? "the first stage has no stage before it" : "";
      case Opcode::kSendActivation:
        if (!behind) return OnThisStage(cell.cell + 1);
        return cell.last ? "the last stage has no stage after it" : "";
      case Opcode::kLoadTarget:
      case Opcode::kLoss:
        return cell.last ? "" : "only the last stage has targets and the loss";
      case Opcode::kForward:
        return "";
      default:
        break;
    }
    if (!training_) return "a forward-only schedule has no backward part";
    if (!cell.backward) return "nothing is trained up to this stage";
    if (op == Opcode::kReceiveGradient) {
      if (!behind) return OnThisStage(cell.cell + 1);
      if (cell.last) return "the last stage has no stage after it";
    }
    if (op == Opcode::kSendGradient) {
      if (!before) return OnThisStage(cell.cell - 1);
      if (cell.first) return "the first stage has no stage before it";
      if (!cell.gives_gradient) return "nothing is trained before this stage";
    }
    if (op == Opcode::kRecompute && options_.rematerialization == Rematerialization::kNever) {
      return "rematerialization is never";
    }
    return "";
  }

  static std::string OnThisStage(int cell) {
    return absl::StrCat("cell ", cell, " is on this stage too: between them nothing is sent");
  }

  // What the instruction needs and does not find.
  std::string Missing(const CellCheck& cell, Opcode op, int m) {
    const MicroBatch& batch = cell.batches[m];
    switch (op) {
      case Opcode::kForward:
        return HasInput(cell, m) && (!cell.loads || batch.has(Opcode::kLoadInput))
                   ? ""
                   : "its input is not there yet";
      case Opcode::kSendActivation:
        return batch.has(Opcode::kForward) ? "" : "its forward has not run";
      case Opcode::kLoss:
        if (!batch.has(Opcode::kLoadTarget)) return "its target is not there yet";
        return batch.logits ? "" : "its logits are not there: its forward or recompute comes later";
      case Opcode::kRecompute:
        if (!batch.has(Opcode::kForward)) return "its forward has not run";
        return batch.has_backward() ? "after its backward" : "";
      case Opcode::kBackward:
      case Opcode::kBackwardInput:
        if (batch.has_backward()) return "a second backward";
        if (!batch.stash) return "its stash is not there: its forward or recompute comes later";
        if (cell.last) return batch.has(Opcode::kLoss) ? "" : "its loss has not run";
        return HasGradient(cell, m) ? "" : "its gradient is not there yet";
      case Opcode::kBackwardWeight:
        return batch.has(Opcode::kBackwardInput) ? "" : "its input part has not run";
      case Opcode::kSendGradient:
        return batch.has_backward() ? "" : "its backward has not run";
      case Opcode::kLoadInput:
        return !cell.receives || batch.has(Opcode::kReceiveActivation)
                   ? ""
                   : "its activation is not there yet";
      default:  // needs nothing of its own stage
        return "";
    }
  }

  bool HasInput(const CellCheck& cell, int m) {
    if (cell.first) return true;
    if (cell.receives) return cell.batches[m].has(Opcode::kReceiveActivation);
    return CellOf(CellId(cell.cell - 1))->batches[m].has(Opcode::kForward);
  }
  bool HasGradient(const CellCheck& cell, int m) {
    if (cell.receives_gradient) return cell.batches[m].has(Opcode::kReceiveGradient);
    return CellOf(CellId(cell.cell + 1))->batches[m].has_backward();
  }

  // Sums are made in ascending order of micro-batches in every cell of every schedule.
  static std::string WrongOrder(CellCheck& cell, Opcode op, int m) {
    const bool whole = op == Opcode::kBackward;
    // The moments of batch norm are gathered in forwards.
    if (op == Opcode::kForward && m != cell.forwards++) return "forwards must ascend";
    if (op == Opcode::kLoss && m != cell.losses++) return "losses must ascend";
    if ((whole || op == Opcode::kBackwardInput) && m != cell.input_parts++)
      return "backwards must ascend";
    if ((whole || op == Opcode::kBackwardWeight) && m != cell.weight_parts++) {
      return "weight gradients must be added in ascending order";
    }
    return "";
  }

  // What the instruction leaves alive; the limits on that.
  std::string Keep(const CellCheck& cell, Opcode op, MicroBatch& batch) {
    switch (op) {
      case Opcode::kLoadInput:
        return cell.first ? AddLive() : "";  // else counted when it came
      case Opcode::kReceiveActivation:
        return AddLive();
      case Opcode::kForward: {
        const bool handed_over = !cell.first && !cell.receives;
        std::string problem = handed_over ? AddLive() : "";
        batch.logits = cell.last && !(training_ && batch.recomputed);
        if (problem.empty() && cell.backward && !batch.recomputed) problem = AddStash(batch);
        if (!cell.backward && !cell.last && !cell.sends) --live_;
        return problem;
      }
      case Opcode::kRecompute:
        batch.logits = cell.last;
        return AddStash(batch);
      case Opcode::kBackward:
      case Opcode::kBackwardWeight:
        batch.stash = false;
        --stashes_;
        --live_;
        return "";
      case Opcode::kSendActivation:
      case Opcode::kLoss:
        if (!cell.backward) --live_;
        return "";
      default:
        return "";
    }
  }

  std::string AddLive() {
    if (++live_ <= limits_.max_live_micro_batches) return "";
    return absl::StrCat("over ", limits_.max_live_micro_batches, " live micro-batches");
  }

  // Rematerialization promises that one stash at a time is enough.
  std::string AddStash(MicroBatch& batch) {
    batch.stash = true;
    if (++stashes_ <= 1 || options_.rematerialization == Rematerialization::kNever) return "";
    return absl::StrCat("a second stash alive, but rematerialization is ",
                        RematerializationName(options_.rematerialization),
                        ": recompute later, put W behind its I, or set rematerialization: never");
  }

  absl::Status CheckComplete() const {
    for (const CellCheck& cell : cells_) RETURN_IF_ERROR(CheckComplete(cell));
    return absl::OkStatus();
  }

  absl::Status CheckComplete(const CellCheck& cell) const {
    std::vector<Opcode> wanted;
    if (cell.receives) wanted.push_back(Opcode::kReceiveActivation);
    if (cell.loads) wanted.push_back(Opcode::kLoadInput);
    wanted.push_back(Opcode::kForward);
    if (cell.last) wanted.insert(wanted.end(), {Opcode::kLoadTarget, Opcode::kLoss});
    if (cell.sends) wanted.push_back(Opcode::kSendActivation);
    if (cell.receives_gradient) wanted.push_back(Opcode::kReceiveGradient);
    if (cell.sends_gradient) wanted.push_back(Opcode::kSendGradient);
    for (int m = 0; m < options_.micro_batches; ++m) {
      std::vector<Opcode> of_batch = wanted;
      if (cell.backward) {
        of_batch.push_back(cell.batches[m].has(Opcode::kBackwardInput) ? Opcode::kBackwardWeight
                                                                       : Opcode::kBackward);
      }
      for (Opcode op : of_batch) {
        if (!cell.batches[m].has(op)) return IsMissing({op, MicroBatchId(m), CellId(cell.cell)});
      }
    }
    for (size_t i = 0; i < kOpcodes; ++i) {
      const Opcode op = static_cast<Opcode>(i);
      if (!options_.HasTied(op, cell.cell) || cell.tied_done[i]) continue;
      return IsMissing({op, MicroBatchId(0), CellId(cell.cell)});
    }
    return absl::OkStatus();
  }

  absl::Status IsMissing(const Instruction& instruction) const {
    return Bad(program_, program_.instructions.size(), with_cell_,
               absl::StrCat(Text(instruction), " is missing"));
  }

  const ScheduleOptions& options_;
  const PipelineLimits& limits_;
  const StageProgram& program_;
  const bool training_;
  const bool with_cell_;  // texts name it
  std::vector<CellCheck> cells_;
  int turn_ = 0;  // that the program has come to
  int live_ = 0;
  int stashes_ = 0;
};

std::vector<size_t> PositionsOf(const StageProgram& program, Opcode op, int cell) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.op == op && instruction.cell.value == cell) positions.push_back(i);
  }
  return positions;
}

// Links are FIFO: the n-th receive takes the n-th message sent. Down or up the edge behind cell
// `edge`.
absl::Status CheckOrder(const Schedule& schedule, int edge, bool down) {
  const int from = down ? edge : edge + 1, to = down ? edge + 1 : edge;
  const StageProgram& sender = schedule.programs[schedule.options.StageOfCell(from)];
  const StageProgram& receiver = schedule.programs[schedule.options.StageOfCell(to)];
  const std::vector<size_t> sends =
      PositionsOf(sender, down ? Opcode::kSendActivation : Opcode::kSendGradient, from);
  const std::vector<size_t> receives =
      PositionsOf(receiver, down ? Opcode::kReceiveActivation : Opcode::kReceiveGradient, to);
  CHECK(sends.size() == receives.size()) << "both programs are complete";
  const bool with_cell = !schedule.options.placement.empty();
  for (size_t n = 0; n < sends.size(); ++n) {
    const Instruction& sent = sender.instructions[sends[n]];
    if (sent.micro_batch == receiver.instructions[receives[n]].micro_batch) continue;
    return Bad(receiver, receives[n], with_cell,
               absl::StrCat(FormatInstruction(receiver.instructions[receives[n]], with_cell),
                            ": message number ", n, " from stage ", sender.stage.value, " is ",
                            FormatInstruction(sent, with_cell)));
  }
  return absl::OkStatus();
}

absl::Status CheckRunsToCompletion(const Schedule& schedule, const PipelineLimits& limits) {
  const std::vector<size_t> positions =
      WalkPipeline(schedule.options, schedule.programs, limits.link_capacity,
                   [](const WalkStep&) {});
  std::string stuck;
  constexpr int kShown = 8;
  int count = 0;
  for (size_t stage = 0; stage < positions.size(); ++stage) {
    const StageProgram& program = schedule.programs[stage];
    if (positions[stage] == program.instructions.size()) continue;
    if (++count <= kShown)
      absl::StrAppend(&stuck, "\n", MarkInstruction(program, positions[stage], !schedule.options.placement.empty()));
  }
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("schedule: deadlock with links of ",
                                                 limits.link_capacity, " messages: ", count,
                                                 " stages wait for each other", stuck));
}

absl::Status CheckPlacement(const ScheduleOptions& options) {
  std::vector<bool> used(static_cast<size_t>(options.stages), options.placement.empty());
  for (size_t cell = 0; cell < options.placement.size(); ++cell) {
    const int stage = options.placement[cell];
    if (stage < 0 || stage >= options.stages) {
      return absl::InvalidArgumentError(absl::StrCat("schedule: cell ", cell, " is on stage ",
                                                     stage, ", stages count from 0 to ",
                                                     options.stages - 1));
    }
    used[static_cast<size_t>(stage)] = true;
  }
  for (size_t stage = 0; stage < used.size(); ++stage) {
    if (used[stage]) continue;
    return absl::InvalidArgumentError(absl::StrCat("schedule: stage ", stage, " has no cell"));
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const Schedule& schedule, const PipelineLimits& limits) {
  const ScheduleOptions& options = schedule.options;
  if (options.stages < 1 || options.micro_batches < 1) {
    return absl::InvalidArgumentError(absl::StrCat("schedule: ", options.stages, " stages and ",
                                                   options.micro_batches,
                                                   " micro-batches; must be >= 1"));
  }
  RETURN_IF_ERROR(CheckPlacement(options));
  if (options.first_backward < 0 || options.first_backward >= options.cells()) {
    return absl::InvalidArgumentError(absl::StrCat("schedule: the first backward in cell ",
                                                   options.first_backward, " of ",
                                                   options.cells()));
  }
  if (limits.link_capacity < 1 || limits.max_live_micro_batches < 1) {
    return absl::InvalidArgumentError("schedule: limits must be >= 1");
  }
  if (schedule.programs.size() != static_cast<size_t>(options.stages)) {
    return absl::InvalidArgumentError(absl::StrCat("schedule: ", schedule.programs.size(),
                                                   " programs for ", options.stages, " stages"));
  }
  for (int stage = 0; stage < options.stages; ++stage) {
    if (schedule.programs[stage].stage == StageId(stage)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: program number ", stage, " is of stage ", schedule.programs[stage].stage.value));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateSchedule(const Schedule& schedule, const PipelineLimits& limits) {
  RETURN_IF_ERROR(CheckShape(schedule, limits));
  for (const StageProgram& program : schedule.programs) {
    RETURN_IF_ERROR(ProgramCheck(schedule.options, limits, program).Run());
  }
  for (int edge = 0; edge + 1 < schedule.options.cells(); ++edge) {
    if (schedule.options.IsLocal(edge)) continue;
    RETURN_IF_ERROR(CheckOrder(schedule, edge, /*down=*/true));
    if (schedule.options.HasBackward(edge)) {
      RETURN_IF_ERROR(CheckOrder(schedule, edge, /*down=*/false));
    }
  }
  return CheckRunsToCompletion(schedule, limits);
}

}  // namespace stagecoach
