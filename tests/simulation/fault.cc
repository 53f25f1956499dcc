#include "tests/simulation/fault.h"

#include "absl/strings/str_format.h"
#include "base/errors/check.h"

namespace stagecoach {

using Kind = Fault::Kind;

const char* FaultName(Kind kind) {
  switch (kind) {
    case Kind::kKill:
      return "kill";
    case Kind::kPowerCut:
      return "power cut";
    case Kind::kBlackout:
      return "blackout";
    case Kind::kStop:
      return "stop";
    case Kind::kDrain:
      return "drain";
    case Kind::kPartition:
      return "partition";
    case Kind::kOneWay:
      return "one-way partition";
    case Kind::kIsolation:
      return "isolation";
    case Kind::kReset:
      return "reset";
    case Kind::kDelay:
      return "delay";
    case Kind::kLoss:
      return "loss";
    case Kind::kFlips:
      return "flips";
    case Kind::kRepeats:
      return "repeats";
    case Kind::kOldJournal:
      return "old journal";
    case Kind::kJournalFull:
      return "journal full";
    case Kind::kJournalFails:
      return "journal fails";
    case Kind::kJournalSlow:
      return "journal slow";
    case Kind::kFolderFull:
      return "folder full";
    case Kind::kFolderFails:
      return "folder fails";
    case Kind::kHostFolder:
      return "folder fails for host";
    case Kind::kStoreLoss:
      return "store loses answers";
    case Kind::kTwin:
      return "twin";
    case Kind::kFolderSlow:
      return "folder slow";
    case Kind::kRot:
      return "rot";
    case Kind::kClockJump:
      return "clock jump";
    case Kind::kSlowStage:
      return "slow stage";
  }
  CHECK(false) << "fault " << static_cast<int>(kind) << " has no name";
}

std::string FaultText(const Fault& fault) {
  return absl::StrFormat("%.6f to %.6f: %s, host %d, other %d, amount %g", fault.at, fault.until,
                         FaultName(fault.kind), fault.host, fault.other, fault.amount);
}

bool IsOfFolder(Kind kind) {
  return kind == Kind::kFolderFull || kind == Kind::kFolderFails || kind == Kind::kHostFolder;
}

bool IsOfJournal(Kind kind) {
  return kind == Kind::kJournalFull || kind == Kind::kJournalFails || kind == Kind::kOldJournal;
}

bool TakesStages(Kind kind) {
  return kind == Kind::kKill || kind == Kind::kPowerCut || kind == Kind::kStop ||
         kind == Kind::kIsolation || kind == Kind::kPartition || kind == Kind::kOneWay ||
         kind == Kind::kDrain || kind == Kind::kBlackout;
}

}  // namespace stagecoach
