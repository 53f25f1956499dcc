// SnapshotPeers: how a stage sends parts of its shards to others, and fetches parts of theirs. Over
// gRPC in a stage server (services/stage/snapshots/snapshot_client.h), within the process in tests.
// Ownership: borrowed; outlives its users.
// Threads:   any; a call waits for its answer, at most for a deadline of its own.
// Errors:    the other stage's; UNAVAILABLE, DEADLINE_EXCEEDED; DATA_LOSS if bytes have changed on
//            the way; CANCELLED once cancelled.
#ifndef STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_PEERS_H_
#define STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/ids.h"
#include "checkpoint/snapshot.h"

namespace stagecoach {

// Bytes of one message: a round trip costs little, and the link's own frames hardly wait.
inline constexpr int64_t kSnapshotPartBytes = int64_t{1} << 20;

// A part of a shard on its way to the stage that keeps a copy. Parts come in order.
struct SnapshotPart {
  Fence fence;  // of the sender's cell; step: the snapshot's
  std::string key;
  uint64_t kept = 0;  // as RunCommand::snapshot_kept
  bool kept_of_load = false;
  HeldShard shard;     // with the first part; later ones have its file's name only
  int64_t offset = 0;  // in the file
  std::span<const std::byte> bytes;
};

struct SnapshotRange {
  std::string job, key;
  uint64_t step = 0;
  std::string file;
  int64_t offset = 0;
};

class SnapshotPeers {
 public:
  virtual ~SnapshotPeers() = default;
  virtual absl::Status Put(const std::string& address, const SnapshotPart& part) = 0;
  // Fills the target, of at most kSnapshotPartBytes.
  virtual absl::Status Get(const std::string& address, const SnapshotRange& range,
                           std::span<std::byte> target) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_SNAPSHOT_PEERS_H_
