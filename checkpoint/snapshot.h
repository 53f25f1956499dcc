// Snapshot: a checkpoint in the memory of stages. Each stage holds the shard of its own cell and
// that of a neighbour's. So another process has the shard of a lost one. A pure function finds
// shards that make a whole.
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

// A shard that a stage holds, as the stage reports it.
struct HeldShard {
  uint64_t step = 0;
  ShardLayers layers;
  std::string manifest;  // as FormatManifest writes it, without shards
  ShardInfo info;
  friend bool operator==(const HeldShard&, const HeldShard&) = default;
};

struct Snapshot {
  Manifest manifest;         // with shards
  std::vector<int> holders;  // for each of manifest.shards: the stages that reported it
};

// Finds the newest step in [least, most] whose reported shards cover the layers [0, layers) without
// a gap and without an overlap. Their manifests must agree about the training. If some differ, it
// tries larger groups first. `held`: by holder. nullopt: there is none.
std::optional<Snapshot> NewestSnapshot(std::span<const std::vector<HeldShard>> held, int layers,
                                       uint64_t least, uint64_t most);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_SNAPSHOT_H_
