// ValidateSchedule: first every program by itself (the life of each micro-batch), then neighbours
// against each other, then all together on links of limited room. Messages of tied parameters stand
// first or last in every program, so their order on a link is right if each program is.
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

absl::Status Bad(const StageProgram& program, size_t position, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("schedule: stage ", program.stage.value, ": ",
                                                 what, "\n", MarkInstruction(program, position)));
}

// Follows one stage's program and knows what lives of every micro-batch.
class ProgramCheck {
 public:
  ProgramCheck(const ScheduleOptions& options, const PipelineLimits& limits,
               const StageProgram& program)
      : options_(options),
        limits_(limits),
        program_(program),
        training_(!options.forward_only),
        backward_(options.HasBackward(program.stage.value)),
        sends_gradient_(options.SendsGradient(program.stage.value)),
        first_(program.stage.value == 0),
        loads_(options.Loads(program.stage.value)),
        last_(program.stage.value == options.stages - 1),
        batches_(options.micro_batches) {
    for (const Instruction& instruction : program.instructions) {
      if (instruction.op == Opcode::kRecompute && InRange(instruction.micro_batch)) {
        batches_[instruction.micro_batch.value].recomputed = true;
      }
    }
  }

  absl::Status Run() {
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const std::string problem = Step(program_.instructions[i]);
      if (!problem.empty()) {
        return Bad(program_, i,
                   absl::StrCat(FormatInstruction(program_.instructions[i]), ": ", problem));
      }
    }
    return CheckComplete();
  }

 private:
  struct MicroBatch {
    std::array<bool, kOpcodes> done{};
    bool recomputed = false;  // an R of it stands in the program
    bool stash = false;
    bool logits = false;  // on the last stage
    bool has(Opcode op) const { return done[static_cast<size_t>(op)]; }
  };

  bool InRange(MicroBatchId id) const { return id.value >= 0 && id.value < options_.micro_batches; }

  // Empty if the instruction may stand here, else why not.
  std::string Step(const Instruction& instruction) {
    const int m = instruction.micro_batch.value;
    if (static_cast<size_t>(instruction.op) >= kOpcodes) return "no such instruction";
    if (!IsOfMicroBatch(instruction.op)) return StepTied(instruction.op);
    if (turn_ > kTurnOfMicroBatches) return "after the gradients of tied parameters";
    turn_ = kTurnOfMicroBatches;
    if (!InRange(instruction.micro_batch)) {
      return absl::StrCat("micro-batches count from 0 to ", options_.micro_batches - 1);
    }
    MicroBatch& batch = batches_[m];
    if (batch.has(instruction.op)) return "a second time";
    std::string problem = WrongPlace(instruction.op);
    if (problem.empty()) problem = Missing(instruction.op, batch);
    if (problem.empty()) problem = WrongOrder(instruction.op, m);
    if (!problem.empty()) return problem;
    batch.done[static_cast<size_t>(instruction.op)] = true;
    return Keep(instruction.op, batch);
  }

  // Values of tied parameters come first and their gradients last, in the order of Opcode.
  static constexpr int kTurnOfMicroBatches = 3;
  std::string StepTied(Opcode op) {
    if (!options_.HasTied(op, program_.stage.value)) {
      return "no tied parameter asks for it on this stage";
    }
    const int behind = static_cast<int>(op) - static_cast<int>(Opcode::kReceiveTiedValues);
    const int turn = op < Opcode::kReceiveTiedGradients ? behind + 1 : behind + 2;
    if (turn == turn_) return "a second time";
    if (turn < turn_) return turn_ == kTurnOfMicroBatches ? "values come first" : "out of order";
    turn_ = turn;
    tied_done_[static_cast<size_t>(op)] = true;
    return "";
  }

  // Instructions that this stage or this kind of schedule does not have.
  std::string WrongPlace(Opcode op) const {
    switch (op) {
      case Opcode::kLoadInput:
        return loads_ ? "" : "this stage's layers read nothing of the data source";
      case Opcode::kReceiveActivation:
        return first_ ? "the first stage has no stage before it" : "";
      case Opcode::kSendActivation:
        return last_ ? "the last stage has no stage after it" : "";
      case Opcode::kLoadTarget:
      case Opcode::kLoss:
        return last_ ? "" : "only the last stage has targets and the loss";
      case Opcode::kForward:
        return "";
      default:
        break;
    }
    if (!training_) return "a forward-only schedule has no backward part";
    if (!backward_) return "nothing is trained up to this stage";
    if (op == Opcode::kReceiveGradient && last_) return "the last stage has no stage after it";
    if (op == Opcode::kSendGradient && first_) return "the first stage has no stage before it";
    if (op == Opcode::kSendGradient && !sends_gradient_)
      return "nothing is trained before this stage";
    if (op == Opcode::kRecompute && options_.rematerialization == Rematerialization::kNever) {
      return "rematerialization is never";
    }
    return "";
  }

  // What the instruction needs and does not find.
  std::string Missing(Opcode op, const MicroBatch& batch) const {
    switch (op) {
      case Opcode::kForward:
        return (!loads_ || batch.has(Opcode::kLoadInput)) &&
                       (first_ || batch.has(Opcode::kReceiveActivation))
                   ? ""
                   : "its input is not there yet";
      case Opcode::kSendActivation:
        return batch.has(Opcode::kForward) ? "" : "its forward has not run";
      case Opcode::kLoss:
        if (!batch.has(Opcode::kLoadTarget)) return "its target is not there yet";
        return batch.logits ? "" : "its logits are not there: its forward or recompute comes later";
      case Opcode::kRecompute:
        if (!batch.has(Opcode::kForward)) return "its forward has not run";
        return batch.has(Opcode::kBackward) || batch.has(Opcode::kBackwardInput)
                   ? "after its backward"
                   : "";
      case Opcode::kBackward:
      case Opcode::kBackwardInput:
        if (batch.has(Opcode::kBackward) || batch.has(Opcode::kBackwardInput))
          return "a second backward";
        if (!batch.stash) return "its stash is not there: its forward or recompute comes later";
        if (last_) return batch.has(Opcode::kLoss) ? "" : "its loss has not run";
        return batch.has(Opcode::kReceiveGradient) ? "" : "its gradient is not there yet";
      case Opcode::kBackwardWeight:
        return batch.has(Opcode::kBackwardInput) ? "" : "its input part has not run";
      case Opcode::kSendGradient:
        return batch.has(Opcode::kBackward) || batch.has(Opcode::kBackwardInput)
                   ? ""
                   : "its backward has not run";
      case Opcode::kLoadInput:
        return first_ || batch.has(Opcode::kReceiveActivation) ? ""
                                                               : "its activation is not there yet";
      default:  // needs nothing of its own stage
        return "";
    }
  }

  // Sums are made in ascending order of micro-batches on every stage of every schedule.
  std::string WrongOrder(Opcode op, int m) {
    const bool whole = op == Opcode::kBackward;
    if (op == Opcode::kLoss && m != losses_++) return "losses must ascend";
    if ((whole || op == Opcode::kBackwardInput) && m != input_parts_++)
      return "backwards must ascend";
    if ((whole || op == Opcode::kBackwardWeight) && m != weight_parts_++) {
      return "weight gradients must be added in ascending order";
    }
    return "";
  }

  // What the instruction leaves alive; the limits on that.
  std::string Keep(Opcode op, MicroBatch& batch) {
    switch (op) {
      case Opcode::kLoadInput:
        if (!first_) return "";  // counted when it was received
        [[fallthrough]];
      case Opcode::kReceiveActivation:
        if (++live_ > limits_.max_live_micro_batches) {
          return absl::StrCat("over ", limits_.max_live_micro_batches, " live micro-batches");
        }
        return "";
      case Opcode::kForward:
        batch.logits = last_ && !(training_ && batch.recomputed);
        return backward_ && !batch.recomputed ? AddStash(batch) : "";
      case Opcode::kRecompute:
        batch.logits = last_;
        return AddStash(batch);
      case Opcode::kBackward:
      case Opcode::kBackwardWeight:
        batch.stash = false;
        --stashes_;
        --live_;
        return "";
      case Opcode::kSendActivation:
      case Opcode::kLoss:
        if (!backward_) --live_;
        return "";
      default:
        return "";
    }
  }

  // Rematerialization promises that one stash at a time is enough.
  std::string AddStash(MicroBatch& batch) {
    batch.stash = true;
    if (++stashes_ <= 1 || options_.rematerialization == Rematerialization::kNever) return "";
    return absl::StrCat("a second stash alive, but rematerialization is ",
                        RematerializationName(options_.rematerialization),
                        ": recompute what is not needed yet");
  }

  absl::Status CheckComplete() const {
    std::vector<Opcode> wanted = {Opcode::kForward};
    if (loads_) wanted.insert(wanted.begin(), Opcode::kLoadInput);
    if (!first_) wanted.insert(wanted.begin(), Opcode::kReceiveActivation);
    if (last_) {
      wanted.insert(wanted.end(), {Opcode::kLoadTarget, Opcode::kLoss});
    } else {
      wanted.push_back(Opcode::kSendActivation);
      if (backward_) wanted.push_back(Opcode::kReceiveGradient);
    }
    if (sends_gradient_) wanted.push_back(Opcode::kSendGradient);
    for (int m = 0; m < options_.micro_batches; ++m) {
      std::vector<Opcode> of_batch = wanted;
      if (backward_) {
        of_batch.push_back(batches_[m].has(Opcode::kBackwardInput) ? Opcode::kBackwardWeight
                                                                   : Opcode::kBackward);
      }
      for (Opcode op : of_batch) {
        if (batches_[m].has(op)) continue;
        return Bad(program_, program_.instructions.size(),
                   absl::StrCat(FormatInstruction({op, MicroBatchId(m)}), " is missing"));
      }
    }
    for (size_t i = 0; i < kOpcodes; ++i) {
      const Opcode op = static_cast<Opcode>(i);
      if (!options_.HasTied(op, program_.stage.value) || tied_done_[i]) continue;
      return Bad(program_, program_.instructions.size(),
                 absl::StrCat(FormatInstruction({op}), " is missing"));
    }
    return absl::OkStatus();
  }

  const ScheduleOptions& options_;
  const PipelineLimits& limits_;
  const StageProgram& program_;
  const bool training_;
  const bool backward_, sends_gradient_;
  const bool first_;
  const bool loads_;
  const bool last_;
  std::vector<MicroBatch> batches_;
  int turn_ = 0;  // that the program has come to
  std::array<bool, kOpcodes> tied_done_{};
  int losses_ = 0;
  int input_parts_ = 0;
  int weight_parts_ = 0;
  int live_ = 0;
  int stashes_ = 0;
};

std::vector<size_t> PositionsOf(const StageProgram& program, Opcode op) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (program.instructions[i].op == op) positions.push_back(i);
  }
  return positions;
}

// Links are FIFO: the n-th receive takes the n-th message sent.
absl::Status CheckOrder(const StageProgram& sender, Opcode send, const StageProgram& receiver,
                        Opcode receive) {
  const std::vector<size_t> sends = PositionsOf(sender, send);
  const std::vector<size_t> receives = PositionsOf(receiver, receive);
  CHECK(sends.size() == receives.size()) << "both programs are complete";
  for (size_t n = 0; n < sends.size(); ++n) {
    const Instruction& sent = sender.instructions[sends[n]];
    if (sent.micro_batch == receiver.instructions[receives[n]].micro_batch) continue;
    return Bad(
        receiver, receives[n],
        absl::StrCat(FormatInstruction(receiver.instructions[receives[n]]), ": message number ", n,
                     " from stage ", sender.stage.value, " is ", FormatInstruction(sent)));
  }
  return absl::OkStatus();
}

absl::Status CheckRunsToCompletion(const Schedule& schedule, const PipelineLimits& limits) {
  const std::vector<size_t> positions =
      WalkPipeline(schedule.programs, limits.link_capacity, [](const WalkStep&) {});
  std::string stuck;
  constexpr int kShown = 8;
  int count = 0;
  for (size_t stage = 0; stage < positions.size(); ++stage) {
    const StageProgram& program = schedule.programs[stage];
    if (positions[stage] == program.instructions.size()) continue;
    if (++count <= kShown)
      absl::StrAppend(&stuck, "\n", MarkInstruction(program, positions[stage]));
  }
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("schedule: deadlock with links of ",
                                                 limits.link_capacity, " messages: ", count,
                                                 " stages wait for each other", stuck));
}

absl::Status CheckShape(const Schedule& schedule, const PipelineLimits& limits) {
  const ScheduleOptions& options = schedule.options;
  if (options.stages < 1 || options.micro_batches < 1) {
    return absl::InvalidArgumentError(absl::StrCat("schedule: ", options.stages, " stages and ",
                                                   options.micro_batches,
                                                   " micro-batches; must be >= 1"));
  }
  if (options.first_backward < 0 || options.first_backward >= options.stages) {
    return absl::InvalidArgumentError(absl::StrCat("schedule: the first backward on stage ",
                                                   options.first_backward, " of ", options.stages));
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
  for (size_t stage = 0; stage + 1 < schedule.programs.size(); ++stage) {
    const StageProgram& upper = schedule.programs[stage];
    const StageProgram& lower = schedule.programs[stage + 1];
    RETURN_IF_ERROR(CheckOrder(upper, Opcode::kSendActivation, lower, Opcode::kReceiveActivation));
    if (!schedule.options.HasBackward(upper.stage.value)) continue;
    RETURN_IF_ERROR(CheckOrder(lower, Opcode::kSendGradient, upper, Opcode::kReceiveGradient));
  }
  return CheckRunsToCompletion(schedule, limits);
}

}  // namespace stagecoach
