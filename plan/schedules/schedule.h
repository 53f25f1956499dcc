// Schedule: what every stage does in one step, in order; a value without pointers, tensors or time.
// A pure generator makes it, ValidateSchedule accepts it, Simulate times it, FormatSchedule shows
// it. The executor interprets it and knows no schedule by name.
// Units and shapes: stages, cells and micro-batches count from 0. A stage holds one cell or more;
//         edge c lies between cells c and c + 1. Between two cells of one stage nothing is sent: a
//         forward leaves its outputs to the next cell, a backward its gradients to the one before.
// Errors: Validate and Parse return INVALID_ARGUMENT and quote the program with the bad place
//         marked.
// See: GPipe section 2.3, figure 2; docs/ARCHITECTURE.md, "Schedules".
#ifndef STAGECOACH_PLAN_SCHEDULES_SCHEDULE_H_
#define STAGECOACH_PLAN_SCHEDULES_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "plan/job/job_spec.h"
#include "plan/schedules/cell_placement.h"

namespace stagecoach {

enum class Opcode : uint8_t {
  kLoadInput,
  kReceiveActivation,
  kForward,
  kSendActivation,
  kLoadTarget,
  kLoss,
  kReceiveGradient,
  kRecompute,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kSendGradient,
  // For tied parameters (network/passes/tied.h), once a program. Values come down before all else.
  // Gradients go up behind it. Their owner adds them to its own.
  kReceiveTiedValues,
  kSendTiedValues,
  kReceiveTiedGradients,
  kAddTiedGradients,
  kSendTiedGradients
};
inline constexpr size_t kOpcodes = static_cast<size_t>(Opcode::kSendTiedGradients) + 1;
constexpr bool IsOfMicroBatch(Opcode op) { return op < Opcode::kReceiveTiedValues; }
// Whether it belongs to the order of a schedule, from which everything else follows.
constexpr bool IsWork(Opcode op) {
  return op == Opcode::kForward || op == Opcode::kBackward || op == Opcode::kBackwardInput ||
         op == Opcode::kBackwardWeight;
}

// Text: in0 <a0 F0 >a0 t0 L0 <g0 R0 B0 I0 W0 >g0 <v >v <c T >c, in the order of Opcode. Where stages
// have several cells the cell stands before the micro-batch: F2.0 is of cell 2, and <v2.
struct Instruction {
  Opcode op;
  MicroBatchId micro_batch = MicroBatchId(0);  // 0 where it is of none
  CellId cell = CellId(0);
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

struct StageProgram {
  StageId stage;
  std::vector<Instruction> instructions;
  friend bool operator==(const StageProgram&, const StageProgram&) = default;
};

struct OwnSchedule;

struct ScheduleOptions {
  std::string kind = "gpipe";  // of plan/schedules/schedule_kinds.h
  Rematerialization rematerialization = Rematerialization::kAlways;
  int stages = 1;             // K
  int micro_batches = 1;      // M
  bool forward_only = false;  // evaluation: in/receive, F, send; last stage: t, L
  // Cells behind the first whose layers read the data source too; ascending. They load after they
  // receive.
  std::vector<int> loading = {};
  // The first cell that trains anything: none in front of it has a backward, and nothing comes
  // back to them.
  int first_backward = 0;
  // For tied parameters that are trained. tied_cuts: cells behind which an edge follows that has an
  // owner in front of it and a user behind it. tied_owners: cells with an owner. Both ascending.
  std::vector<int> tied_cuts = {}, tied_owners = {};
  CellPlacement placement = {};  // of all cells; empty: of the kind's usual number
  std::shared_ptr<const OwnSchedule> own = nullptr;  // of kind "own": what the user wrote
  int cells() const { return placement.empty() ? stages : static_cast<int>(placement.size()); }
  int StageOfCell(int cell) const { return StageOf(placement, cell); }
  std::vector<int> CellsOfStage(int stage) const { return CellsOf(placement, stage); }
  bool IsLast(int cell) const { return cell + 1 == cells(); }
  // Whether both cells of the edge are on one stage.
  bool IsLocal(int edge) const {
    return edge >= 0 && edge + 1 < cells() && StageOfCell(edge) == StageOfCell(edge + 1);
  }
  bool Loads(int cell) const;
  bool HasBackward(int cell) const { return !forward_only && cell >= first_backward; }
  // Whether its backward gives a gradient to the cell before, on whichever stage.
  bool GivesGradient(int cell) const { return !forward_only && cell > first_backward; }
  // Messages of the cell, and none where the other cell is on the same stage.
  bool ReceivesActivation(int cell) const { return cell > 0 && !IsLocal(cell - 1); }
  bool SendsActivation(int cell) const { return !IsLast(cell) && !IsLocal(cell); }
  bool ReceivesGradient(int cell) const { return HasBackward(cell) && SendsActivation(cell); }
  bool SendsGradient(int cell) const { return GivesGradient(cell) && !IsLocal(cell - 1); }
  // Whether the cell has this instruction: Opcode::kReceiveTiedValues or one of those behind it.
  // Those have one at local edges too.
  bool HasTied(Opcode op, int cell) const;
  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

struct Schedule {
  ScheduleOptions options;
  std::vector<StageProgram> programs;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Messages that a link between stages takes in each direction before a send waits.
inline constexpr int kLinkCapacity = 2;

struct PipelineLimits {
  int max_live_micro_batches = 1 << 20;  // stashes and boundary inputs alive in one stage
  int link_capacity = kLinkCapacity;
};

// F ascending, then B ascending (the paper's figure draws them descending). So every schedule
// accumulates gradients in the same order and gives the same bits. Recompute stands before the wait
// for its gradient. A micro-batch is never recomputed if its backward follows its forward with no
// other forward or backward between. Its stash is the only one alive, so this costs no memory.
// Where stages have several cells, receives come early enough that no sender waits for room
// (plan/schedules/receive_early.h).
Schedule MakeSchedule(ScheduleOptions options);

// For each cell, every F and B comes once, F before B, each ascending. Sends match the receives
// of the edge's other stage in order. The stash is present at B (F of a kept micro-batch, or R). Loss comes before the last
// cell's B. Live micro-batches stay within the limit. The whole runs to completion with links of
// the given capacity.
absl::Status ValidateSchedule(const Schedule& schedule, const PipelineLimits& limits);

// The program without tied values, for when none has changed since the last program. The other
// stages leave theirs out too.
StageProgram WithoutTiedValues(StageProgram program);

// True if the micro-batch's forward must keep its stash: it has a backward and no recompute.
bool KeepsStash(const StageProgram& program, CellId cell, MicroBatchId micro_batch);
// By micro-batch: does its forward by the last cell compute nothing, as before a recompute?
std::vector<bool> EmptyForwards(const Schedule& schedule);

// with_cell: as of a stage with several cells.
std::string FormatInstruction(const Instruction& instruction, bool with_cell = false);
// One line a stage: "stage 0: in0 F0 >a0 ...".
std::string FormatSchedule(const Schedule& schedule);
std::string FormatProgram(const StageProgram& program, bool with_cell = false);
// with_cells: each word names a cell. Otherwise all instructions are of the stage's only cell.
absl::StatusOr<std::vector<StageProgram>> ParsePrograms(const std::string& text,
                                                        bool with_cells = false);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_SCHEDULE_H_
