// JobSnapshots: the snapshots of a job in the memory of stages. A recovery begins with the newest
// that is whole. A job that waits for stages writes it as a checkpoint (SnapshotSave).
#ifndef STAGECOACH_COORDINATOR_JOB_STATE_JOB_SNAPSHOTS_H_
#define STAGECOACH_COORDINATOR_JOB_STATE_JOB_SNAPSHOTS_H_

#include <cstdint>
#include <optional>
#include <set>

#include "checkpoint/snapshot.h"
#include "coordinator/fleet/fleet.h"

namespace stagecoach {

// Snapshots since a load; the next load resets it.
struct SnapshotsOfLoad {
  bool possible = false;    // all stages have room
  uint64_t begun_step = 0;  // step of the load
  // What it was loaded from, the last one that was asked for, and the newest that each stage and
  // its neighbour have.
  std::optional<uint64_t> loaded_step, taken_step, whole_step;
};

// A snapshot that becomes a checkpoint; a new generation resets it.
struct SnapshotSave {
  bool on = false;     // it is the operation at hand
  bool tried = false;  // nothing new is held meanwhile
  // There was too little room for the save and the job's last checkpoint. Before the job fails, a
  // save takes that room.
  bool lacked_room = false;
  std::optional<Snapshot> chosen;
};

struct JobSnapshots {
  bool taken = false;  // stages may hold some, of this coordinator's time or before
  bool asked = false;  // stages were asked for them in this generation
  SnapshotsOfLoad load;
  SnapshotSave save;
  double seconds = 0;      // of the last one, on its slowest stage; 0: not known
  int64_t unfinished = 0;  // generations in a row that ended while one was on its way
  // Furthest step when this coordinator took the job up. Later steps may not be on record.
  std::optional<uint64_t> opened_step;
  uint64_t tried_step = 0;   // step whose snapshot could not be loaded
  int64_t tries = 0;         // how often it was tried
  std::set<StagePeer> left;  // may hold some and are not in the placement any more
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_STATE_JOB_SNAPSHOTS_H_
