// An interpreter of schedules on symbols, for tests: it executes the programs of all stages with
// strings for tensors and untagged FIFO links, and returns every sum that the step would make. It
// shares nothing with the validator, so each can be held against the other.
#ifndef STAGECOACH_PLAN_SCHEDULES_INTERPRETER_TESTING_H_
#define STAGECOACH_PLAN_SCHEDULES_INTERPRETER_TESTING_H_

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

// The sums of a step.
struct Sums {
  std::vector<std::vector<std::string>> gradients;  // by cell: what is added, in order
  std::vector<std::string> losses;
  friend bool operator==(const Sums&, const Sums&) = default;
};

class Interpreter {
 public:
  Interpreter(const Schedule& schedule, size_t link_capacity)
      : schedule_(schedule),
        capacity_(link_capacity),
        down_(static_cast<size_t>(schedule.options.cells())),
        up_(down_.size()),
        slots_(down_.size()) {
    sums_.gradients.resize(down_.size());
  }

  // nullopt: an instruction found no operand, a wait never ended, or something was left over.
  std::optional<Sums> Run() {
    std::vector<size_t> next(schedule_.programs.size(), 0);
    bool progress = true;
    while (progress && !failed_) {
      progress = false;
      for (size_t stage = 0; stage < next.size(); ++stage) {
        const auto& instructions = schedule_.programs[stage].instructions;
        while (!failed_ && next[stage] < instructions.size() &&
               Execute(instructions[next[stage]])) {
          ++next[stage];
          progress = true;
        }
      }
    }
    for (size_t stage = 0; stage < next.size(); ++stage) {
      if (next[stage] < schedule_.programs[stage].instructions.size()) failed_ = true;
    }
    for (size_t cell = 0; cell < slots_.size(); ++cell) {
      for (const auto& [m, slot] : slots_[cell]) {
        if (slot.input || slot.output || slot.gradient || slot.stash || slot.input_gradient) {
          failed_ = true;
        }
      }
      if (!down_[cell].empty() || !up_[cell].empty()) failed_ = true;
    }
    if (failed_) return std::nullopt;
    return sums_;
  }

 private:
  using Symbol = std::optional<std::string>;
  struct Slot {
    Symbol input, boundary, stash, output, logits, target, gradient, input_gradient, weight_part;
  };

  std::string Take(Symbol* symbol) {
    if (!symbol->has_value()) {
      failed_ = true;
      return "";
    }
    std::string value = **symbol;
    symbol->reset();
    return value;
  }
  static bool Push(std::deque<std::string>* link, std::string value) {
    link->push_back(std::move(value));
    return true;
  }

  bool Execute(const Instruction& instruction) {
    const int m = instruction.micro_batch.value;
    const auto cell = static_cast<size_t>(instruction.cell.value);
    const bool last = cell + 1 == slots_.size();
    Slot& slot = slots_[cell][m];
    switch (instruction.op) {
      case Opcode::kLoadInput:
        slot.input = absl::StrCat("in", m);
        return true;
      case Opcode::kReceiveActivation:
        if (cell == 0) return Fail();
        return Receive(&down_[cell - 1], &slot.input);
      case Opcode::kForward:
        return Forward(cell, instruction.micro_batch, &slot);
      case Opcode::kRecompute: {
        const std::string x = Take(&slot.boundary);
        slot.stash = x;
        if (last) slot.logits = absl::StrCat("f(", x, ")");
        return true;
      }
      case Opcode::kSendActivation:
        if (last) return Fail();
        if (down_[cell].size() == capacity_) return false;
        return Push(&down_[cell], Take(&slot.output));
      case Opcode::kLoadTarget:
        slot.target = absl::StrCat("t", m);
        return true;
      case Opcode::kLoss: {
        const std::string logits = Take(&slot.logits);
        const std::string pair = absl::StrCat("(", logits, ",", Take(&slot.target), ")");
        sums_.losses.push_back("l" + pair);
        if (!schedule_.options.forward_only) slot.gradient = "dl" + pair;
        return true;
      }
      case Opcode::kReceiveGradient:
        if (last) return Fail();
        return Receive(&up_[cell + 1], &slot.gradient);
      case Opcode::kBackward:
      case Opcode::kBackwardInput: {
        const std::string x = Take(&slot.stash);
        const std::string pair = absl::StrCat("(", x, ",", Take(&slot.gradient), ")");
        if (schedule_.options.GivesGradient(static_cast<int>(cell)))
          GiveGradient(cell, m, "dx" + pair);
        slot.weight_part = "dw" + pair;
        if (instruction.op == Opcode::kBackward)
          sums_.gradients[cell].push_back(Take(&slot.weight_part));
        return true;
      }
      case Opcode::kBackwardWeight:
        sums_.gradients[cell].push_back(Take(&slot.weight_part));
        return true;
      case Opcode::kSendGradient:
        if (cell == 0) return Fail();
        if (up_[cell].size() == capacity_) return false;
        return Push(&up_[cell], Take(&slot.input_gradient));
      case Opcode::kReceiveTiedValues:
        return Receive(&down_[cell - 1], &tied_);
      case Opcode::kSendTiedValues:
        return down_[cell].size() < capacity_ && Push(&down_[cell], "v");
      case Opcode::kReceiveTiedGradients:
        return Receive(&up_[cell + 1], &tied_);
      case Opcode::kSendTiedGradients:
        return up_[cell].size() < capacity_ && Push(&up_[cell], "c");
      case Opcode::kAddTiedGradients:
        sums_.gradients[cell].push_back("c");
        return true;
    }
    return Fail();
  }
  bool Forward(size_t cell, MicroBatchId micro_batch, Slot* slot) {
    const bool last = cell + 1 == slots_.size();
    const std::string x = Take(&slot->input);
    const std::string y = absl::StrCat("f(", x, ")");
    if (!last) GiveOutput(cell, micro_batch.value, y);
    if (schedule_.options.HasBackward(static_cast<int>(cell))) {
      if (!KeepsStash(ProgramOf(cell), CellId(static_cast<int>(cell)), micro_batch)) {
        slot->boundary = x;
        return true;
      }
      slot->stash = x;
    }
    if (last) slot->logits = y;
    return true;
  }
  // To a message, or to the next cell of the same stage.
  void GiveOutput(size_t cell, int m, const std::string& y) {
    const bool local = schedule_.options.IsLocal(static_cast<int>(cell));
    (local ? slots_[cell + 1][m].input : slots_[cell][m].output) = y;
  }
  void GiveGradient(size_t cell, int m, const std::string& dx) {
    const bool local = schedule_.options.IsLocal(static_cast<int>(cell) - 1);
    (local ? slots_[cell - 1][m].gradient : slots_[cell][m].input_gradient) = dx;
  }
  const StageProgram& ProgramOf(size_t cell) const {
    return schedule_.programs[schedule_.options.StageOfCell(static_cast<int>(cell))];
  }
  bool Fail() {
    failed_ = true;
    return false;
  }
  bool Receive(std::deque<std::string>* link, Symbol* to) {
    if (link->empty()) return false;
    *to = link->front();
    link->pop_front();
    return true;
  }

  const Schedule& schedule_;
  const size_t capacity_;
  std::vector<std::deque<std::string>> down_, up_;  // by the sending cell
  std::vector<std::map<int, Slot>> slots_;  // by cell
  Symbol tied_;  // that arrived last
  Sums sums_;
  bool failed_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_SCHEDULES_INTERPRETER_TESTING_H_
