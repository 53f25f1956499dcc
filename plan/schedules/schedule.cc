#include "plan/schedules/schedule.h"

#include <algorithm>
#include <initializer_list>

#include "base/errors/check.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

// The skeleton of a stage's program: forwards and backwards in order. Everything else follows from
// it.
std::vector<StageWork> WorkOrder(const ScheduleOptions& options, int stage) {
  std::vector<StageWork> order = ScheduleKinds().Named(options.kind).Order(options, stage);
  if (!options.HasBackward(stage)) {
    std::erase_if(order, [](const StageWork& work) { return work.op != Opcode::kForward; });
  }
  return order;
}

// Which micro-batches keep their stash from forward to backward.
std::vector<bool> KeptMicroBatches(const ScheduleOptions& options,
                                   const std::vector<StageWork>& order) {
  std::vector<bool> kept(options.micro_batches,
                         options.rematerialization == Rematerialization::kNever);
  if (options.rematerialization == Rematerialization::kExceptFirst) kept[0] = true;
  for (size_t i = 1; i < order.size(); ++i) {
    const bool directly = order[i - 1].op == Opcode::kForward && order[i].op != Opcode::kForward &&
                          order[i - 1].micro_batch == order[i].micro_batch;
    if (directly) kept[order[i].micro_batch] = true;
  }
  return kept;
}

StageProgram MakeProgram(const ScheduleOptions& options, int stage) {
  const bool first = stage == 0;
  const bool last = stage == options.stages - 1;
  const std::vector<StageWork> order = WorkOrder(options, stage);
  const std::vector<bool> kept = KeptMicroBatches(options, order);
  StageProgram program{.stage = StageId(stage), .instructions = {}};
  const auto add = [&program](Opcode op, int m) {
    program.instructions.push_back({op, MicroBatchId(m)});
  };
  const auto add_tied = [&](std::initializer_list<Opcode> ops) {
    for (const Opcode op : ops) {
      if (options.HasTied(op, stage)) program.instructions.push_back({op});
    }
  };
  add_tied({Opcode::kReceiveTiedValues, Opcode::kSendTiedValues});
  for (const StageWork& work : order) {
    const int m = work.micro_batch;
    if (work.op == Opcode::kBackwardWeight) {
      add(work.op, m);
      continue;
    }
    const bool forward = work.op == Opcode::kForward;
    if (forward) {
      if (!first) add(Opcode::kReceiveActivation, m);
      if (options.Loads(stage)) add(Opcode::kLoadInput, m);
      add(Opcode::kForward, m);
      if (!last) add(Opcode::kSendActivation, m);
    } else if (!kept[m]) {
      add(Opcode::kRecompute, m);  // before the wait for the gradient: it overlaps the wait
    }
    if (last && (options.forward_only || !forward)) {
      add(Opcode::kLoadTarget, m);
      add(Opcode::kLoss, m);
    }
    if (forward) continue;
    if (!last) add(Opcode::kReceiveGradient, m);
    add(work.op, m);
    if (options.SendsGradient(stage)) add(Opcode::kSendGradient, m);
  }
  add_tied({Opcode::kReceiveTiedGradients, Opcode::kAddTiedGradients, Opcode::kSendTiedGradients});
  return program;
}

}  // namespace

bool ScheduleOptions::Loads(int stage) const {
  return stage == 0 || std::binary_search(loading.begin(), loading.end(), stage);
}

bool ScheduleOptions::HasTied(Opcode op, int stage) const {
  const auto holds = [](const std::vector<int>& stages, int k) {
    return std::binary_search(stages.begin(), stages.end(), k);
  };
  switch (op) {
    case Opcode::kReceiveTiedValues:
      return holds(tied_cuts, stage - 1);
    case Opcode::kSendTiedValues:
      return holds(tied_cuts, stage);
    case Opcode::kReceiveTiedGradients:
      return !forward_only && holds(tied_cuts, stage);
    case Opcode::kAddTiedGradients:
      return !forward_only && holds(tied_owners, stage);
    case Opcode::kSendTiedGradients:
      return !forward_only && holds(tied_cuts, stage - 1);
    default:
      return false;
  }
}

Schedule MakeSchedule(const ScheduleOptions& options) {
  CHECK(options.stages >= 1 && options.micro_batches >= 1)
      << options.stages << " stages, " << options.micro_batches << " micro-batches";
  CHECK(options.first_backward >= 0 && options.first_backward < options.stages)
      << "first backward on stage " << options.first_backward << " of " << options.stages;
  Schedule schedule{.options = options, .programs = {}};
  for (int stage = 0; stage < options.stages; ++stage) {
    schedule.programs.push_back(MakeProgram(options, stage));
  }
  return schedule;
}

StageProgram WithoutTiedValues(StageProgram program) {
  std::erase_if(program.instructions, [](const Instruction& instruction) {
    return instruction.op == Opcode::kReceiveTiedValues ||
           instruction.op == Opcode::kSendTiedValues;
  });
  return program;
}

bool KeepsStash(const StageProgram& program, MicroBatchId micro_batch) {
  bool backward = false;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.micro_batch != micro_batch) continue;
    if (instruction.op == Opcode::kRecompute) return false;
    backward =
        backward || instruction.op == Opcode::kBackward || instruction.op == Opcode::kBackwardInput;
  }
  return backward;
}

std::vector<bool> EmptyForwards(const Schedule& schedule, int stage) {
  std::vector<bool> empty(static_cast<size_t>(schedule.options.micro_batches), false);
  if (stage + 1 < schedule.options.stages) return empty;
  for (const Instruction& instruction : schedule.programs[stage].instructions) {
    if (instruction.op == Opcode::kRecompute) empty[instruction.micro_batch.value] = true;
  }
  return empty;
}

}  // namespace stagecoach
