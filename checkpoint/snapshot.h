// Snapshot: a checkpoint that lies in the memory of stages. Each stage holds the shard of its own cell and that of a
// neighbour's, so that what one lost process had is still somewhere. Which of them make a whole is a pure question.
// See: docs/ARCHITECTURE.md, "Recovery from memory"; docs/formats.md, "Snapshots".
#ifndef STAGECOACH_CHECKPOINT_SNAPSHOT_H_
#define STAGECOACH_CHECKPOINT_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/shard.h"

namespace stagecoach {

// What a stage says of a shard that it holds.
struct HeldShard {
  uint64_t step = 0;
  int first_layer = 0, last_layer = 0;  // [first, last)
  std::string manifest;                 // as FormatManifest writes it, without shards
  ShardInfo info;
  friend bool operator==(const HeldShard&, const HeldShard&) = default;
};

struct Snapshot {
  Manifest manifest;  // with the shards
  std::vector<int>
      holders;  // of each shard, in the order of manifest.shards: who said that it holds it
};

// The newest step in [least, most] of which the shards that were told of cover the layers [0, layers) without a gap and
// without an overlap, under manifests that say the same of the training; where some say otherwise the larger group counts.
// `held`: by holder. Nothing: there is none.
std::optional<Snapshot> NewestSnapshot(std::span<const std::vector<HeldShard>> held, int layers,
                                       uint64_t least, uint64_t most);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_SNAPSHOT_H_
