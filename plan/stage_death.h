// StageDeath: how a stage's process ended by a fatal signal, as the next process of the stage tells
// it.
// Threads: a value.
#ifndef STAGECOACH_PLAN_STAGE_DEATH_H_
#define STAGECOACH_PLAN_STAGE_DEATH_H_

#include <string>

#include "base/ids.h"

namespace stagecoach {

struct StageDeath {
  std::string signal;  // "SIGSEGV"
  // Fence of the current command, without its attempt; no job: there was no command.
  Fence fence;
  MicroBatchId micro_batch;  // invalid: of none
  std::string instruction;   // "forward", "apply", "load", ...
  std::string operation;     // "linear", ...; empty: of none, or not known
  friend bool operator==(const StageDeath&, const StageDeath&) = default;
};

// "SIGSEGV at step 12, micro-batch 3, backward (linear)".
std::string DeathText(const StageDeath& death);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_STAGE_DEATH_H_
