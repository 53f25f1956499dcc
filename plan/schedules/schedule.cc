#include "plan/schedules/schedule.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "base/errors/check.h"
#include "plan/schedules/own_schedule.h"
#include "plan/schedules/receive_early.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

// A stage's forwards and backwards in order, the skeleton of its program. Everything else follows
// from it.
struct CellWork {
  Opcode op;
  int cell, micro_batch;
};

std::vector<CellWork> WorkOfStage(const ScheduleOptions& options,
                                  const std::vector<StageWork>& order, int stage) {
  const std::vector<int> cells = options.CellsOfStage(stage);
  std::vector<CellWork> works;
  for (const StageWork& work : order) {
    const int cell = cells[static_cast<size_t>(work.chunk)];
    if (work.op != Opcode::kForward && !options.HasBackward(cell)) continue;
    works.push_back({work.op, cell, work.micro_batch});
  }
  return works;
}

// Which micro-batches of which cells keep their stash from forward to backward.
class KeptStashes {
 public:
  KeptStashes(const ScheduleOptions& options, const std::vector<CellWork>& works)
      : all_(options.rematerialization == Rematerialization::kNever) {
    bool first = options.rematerialization == Rematerialization::kExceptFirst;
    for (size_t i = 0; i < works.size() && !all_; ++i) {
      if (works[i].op == Opcode::kForward || works[i].op == Opcode::kBackwardWeight) continue;
      const bool directly = i > 0 && works[i - 1].op == Opcode::kForward &&
                            works[i - 1].cell == works[i].cell &&
                            works[i - 1].micro_batch == works[i].micro_batch;
      if (first || directly) kept_.insert({works[i].cell, works[i].micro_batch});
      first = false;
    }
  }
  bool Has(const CellWork& work) const {
    return all_ || kept_.contains({work.cell, work.micro_batch});
  }

 private:
  const bool all_;
  std::set<std::pair<int, int>> kept_;  // cell and micro-batch
};

class ProgramMaker {
 public:
  ProgramMaker(const ScheduleOptions& options, int stage) : options_(options) {
    program_.stage = StageId(stage);
  }

  StageProgram Make(const std::vector<CellWork>& works) {
    const std::vector<int> cells = options_.CellsOfStage(program_.stage.value);
    for (const int cell : cells) {
      AddTied({Opcode::kReceiveTiedValues, Opcode::kSendTiedValues}, cell);
    }
    const KeptStashes kept(options_, works);
    for (const CellWork& work : works) {
      if (work.op == Opcode::kForward) {
        AddForward(work);
      } else if (work.op == Opcode::kBackwardWeight) {
        Add(work.op, work);
      } else {
        // Before the wait for the gradient: it overlaps the wait.
        if (!kept.Has(work)) Add(Opcode::kRecompute, work);
        AddBackward(work);
      }
    }
    for (size_t i = cells.size(); i-- > 0;) {
      AddTied({Opcode::kReceiveTiedGradients, Opcode::kAddTiedGradients,
               Opcode::kSendTiedGradients},
              cells[i]);
    }
    return std::move(program_);
  }

 private:
  void Add(Opcode op, const CellWork& work) {
    program_.instructions.push_back({op, MicroBatchId(work.micro_batch), CellId(work.cell)});
  }
  void AddTied(std::initializer_list<Opcode> ops, int cell) {
    for (const Opcode op : ops) {
      if (options_.HasTied(op, cell)) Add(op, {op, cell, 0});
    }
  }
  void AddLoss(const CellWork& work) {
    Add(Opcode::kLoadTarget, work);
    Add(Opcode::kLoss, work);
  }
  void AddForward(const CellWork& work) {
    if (options_.ReceivesActivation(work.cell)) Add(Opcode::kReceiveActivation, work);
    if (options_.Loads(work.cell)) Add(Opcode::kLoadInput, work);
    Add(Opcode::kForward, work);
    if (options_.SendsActivation(work.cell)) Add(Opcode::kSendActivation, work);
    if (options_.IsLast(work.cell) && options_.forward_only) AddLoss(work);
  }
  void AddBackward(const CellWork& work) {
    if (options_.IsLast(work.cell)) AddLoss(work);
    if (options_.ReceivesGradient(work.cell)) Add(Opcode::kReceiveGradient, work);
    Add(work.op, work);
    if (options_.SendsGradient(work.cell)) Add(Opcode::kSendGradient, work);
  }

  const ScheduleOptions& options_;
  StageProgram program_;
};

}  // namespace

bool ScheduleOptions::Loads(int cell) const {
  return cell == 0 || std::binary_search(loading.begin(), loading.end(), cell);
}

bool ScheduleOptions::HasTied(Opcode op, int cell) const {
  const auto holds = [](const std::vector<int>& cells, int c) {
    return std::binary_search(cells.begin(), cells.end(), c);
  };
  switch (op) {
    case Opcode::kReceiveTiedValues:
      return holds(tied_cuts, cell - 1);
    case Opcode::kSendTiedValues:
      return holds(tied_cuts, cell);
    case Opcode::kReceiveTiedGradients:
      return !forward_only && holds(tied_cuts, cell);
    case Opcode::kAddTiedGradients:
      return !forward_only && holds(tied_owners, cell);
    case Opcode::kSendTiedGradients:
      return !forward_only && holds(tied_cuts, cell - 1);
    default:
      return false;
  }
}

Schedule MakeSchedule(ScheduleOptions options) {
  CHECK(options.stages >= 1 && options.micro_batches >= 1)
      << options.stages << " stages, " << options.micro_batches << " micro-batches";
  if (options.placement.empty() && options.own == nullptr) options.placement = PlacementOf(options.kind, options.stages, 0);
  CHECK(options.first_backward >= 0 && options.first_backward < options.cells())
      << "first backward in cell " << options.first_backward << " of " << options.cells();
  if (options.own != nullptr && options.own->complete && !options.forward_only) {
    return {.options = options, .programs = options.own->programs};
  }
  const std::vector<std::vector<StageWork>> orders =
      ScheduleKinds().Named(options.kind).Orders(options);
  Schedule schedule{.options = options, .programs = {}};
  for (int stage = 0; stage < options.stages; ++stage) {
    schedule.programs.push_back(
        ProgramMaker(options, stage)
            .Make(WorkOfStage(options, orders[static_cast<size_t>(stage)], stage)));
  }
  if (!options.placement.empty() || options.own != nullptr) {
    ReceiveEarly(options, kLinkCapacity, &schedule.programs);
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

bool KeepsStash(const StageProgram& program, CellId cell, MicroBatchId micro_batch) {
  bool backward = false;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.micro_batch != micro_batch || instruction.cell != cell) continue;
    if (instruction.op == Opcode::kRecompute) return false;
    backward =
        backward || instruction.op == Opcode::kBackward || instruction.op == Opcode::kBackwardInput;
  }
  return backward;
}

std::vector<bool> EmptyForwards(const Schedule& schedule) {
  std::vector<bool> empty(static_cast<size_t>(schedule.options.micro_batches), false);
  const int last = schedule.options.cells() - 1, stage = schedule.options.StageOfCell(last);
  for (const Instruction& instruction : schedule.programs[stage].instructions) {
    if (instruction.op == Opcode::kRecompute && instruction.cell.value == last) {
      empty[instruction.micro_batch.value] = true;
    }
  }
  return empty;
}

}  // namespace stagecoach
