// Fault: one thing that goes wrong in a simulated world, with its virtual times, as a value.
#ifndef STAGECOACH_TESTS_SIMULATION_FAULT_H_
#define STAGECOACH_TESTS_SIMULATION_FAULT_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace stagecoach {

struct Fault {
  enum class Kind : uint8_t {
    kKill,          // the process of `host` ends; started again at `until`
    kPowerCut,      // so does its host: nobody is told, and the journal loses what was not synced
    kBlackout,      // all hosts and the storage of checkpoints lose power
    kStop,          // SIGSTOP, and SIGCONT at `until`
    kDrain,         // SIGTERM; started again a while after it has ended
    kPartition,     // nothing passes between `host` and `other`
    kOneWay,        // nothing passes from `host` to `other`
    kIsolation,     // nothing passes between `host` and any other
    kReset,         // the connections between the two are reset
    kDelay,         // `amount` seconds more between the two, both ways
    kLoss,          // this share of what passes between the two comes late
    kFlips,         // of this share of messages from `host` to `other` a bit is flipped
    kRepeats,       // this share of the coordinator's and the stages' calls arrives twice
    kOldJournal,    // the coordinator ends, and begins with a copy from `amount` seconds before
    kJournalFull,   // writes of the journal find no room
    kJournalFails,  // and so do syncs and the rest: I/O errors
    kJournalSlow,   // its syncs take `amount` times as long
    kFolderFull,    // the checkpoints' storage has room for `amount` bytes more
    kFolderFails,   // all of its calls fail, by a code that `other` says
    kHostFolder,  // `amount` of the calls that `host` makes there fail, by a code that `other` says
    kStoreLoss,   // of this share of `host`'s calls of store or bucket no answer comes
    kTwin,        // the coordinator is cut off, and another begins with its journal on the same
                  // checkpoints; stopped meanwhile, the first one goes on at `until`
    kFolderSlow,  // the coordinator's file work takes `amount` times as long
    kRot,         // a byte of a committed checkpoint changes
    kClockJump,   // the wall clock of `host` jumps by `amount` seconds
    kSlowStage,   // what `host` computes takes `amount` times as long
  };
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  Kind kind = Kind::kKill;
  double at = 0, until = 0;  // seconds; at the same moment for what happens once
  int host = 0, other = 0;   // 0: the coordinator's; from 1: those of stages
  double amount = 0;
};

const char* FaultName(Fault::Kind kind);
std::string FaultText(const Fault& fault);

// What may lead to an error of which kind.
bool IsOfFolder(Fault::Kind kind);   // a checkpoint cannot be written or read
bool IsOfJournal(Fault::Kind kind);  // what was told of a job may not be on disk
bool TakesStages(Fault::Kind kind);  // a stage is away

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_FAULT_H_
