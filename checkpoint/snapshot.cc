#include "checkpoint/snapshot.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace stagecoach {
namespace {

struct Told {
  int holder = 0;
  const HeldShard* shard = nullptr;
  const Manifest* manifest = nullptr;
};

// Terms and numbers of stages may differ: a step is the same whoever ran it.
bool SayTheSame(const Manifest& a, const Manifest& b) {
  return a.job == b.job && a.model_sha256 == b.model_sha256 && a.state == b.state &&
         a.dataset_sha256 == b.dataset_sha256 && a.fingerprint == b.fingerprint;
}

// Shards from layer 0 to the last one, each beginning where the one before ends. From the end: what a layer is followed by
// is known when it is looked at.
std::vector<Told> Tile(const std::vector<Told>& shards, int layers) {
  std::map<int, Told> from;  // by first layer: one that leads to the end
  std::set<int> reaches = {layers};
  std::vector<Told> sorted = shards;
  std::sort(sorted.begin(), sorted.end(), [](const Told& a, const Told& b) {
    return a.shard->first_layer > b.shard->first_layer;
  });
  for (const Told& told : sorted) {
    if (told.shard->first_layer >= told.shard->last_layer) continue;
    if (!reaches.contains(told.shard->last_layer)) continue;
    if (reaches.insert(told.shard->first_layer).second) from[told.shard->first_layer] = told;
  }
  std::vector<Told> tiles;
  for (int layer = 0; layer < layers; layer = tiles.back().shard->last_layer) {
    const auto next = from.find(layer);
    if (next == from.end()) return {};
    tiles.push_back(next->second);
  }
  return tiles;
}

}  // namespace

std::optional<Snapshot> NewestSnapshot(std::span<const std::vector<HeldShard>> held, int layers,
                                       uint64_t least, uint64_t most) {
  std::map<std::string, std::optional<Manifest>> manifests;  // many shards come under one text
  std::map<uint64_t, std::vector<Told>, std::greater<>> by_step;
  for (size_t holder = 0; holder < held.size(); ++holder) {
    for (const HeldShard& shard : held[holder]) {
      if (shard.step < least || shard.step > most) continue;
      auto [text, is_new] = manifests.try_emplace(shard.manifest);
      if (is_new) {
        absl::StatusOr<Manifest> parsed = ParseManifest(shard.manifest);
        if (parsed.ok()) text->second = *std::move(parsed);
      }
      if (!text->second.has_value() || text->second->state.step != shard.step) continue;
      by_step[shard.step].push_back({static_cast<int>(holder), &shard, &*text->second});
    }
  }
  for (const auto& [step, told] : by_step) {
    const Manifest& first = *told.front().manifest;
    const bool agreed = std::all_of(told.begin(), told.end(), [&first](const Told& other) {
      return SayTheSame(first, *other.manifest);
    });
    if (!agreed) continue;  // one of them is wrong, and nobody can say which
    std::vector<Told> tiles = Tile(told, layers);
    if (tiles.empty()) continue;
    std::sort(tiles.begin(), tiles.end(), [](const Told& a, const Told& b) {  // as in manifests
      return a.shard->info.file < b.shard->info.file;
    });
    Snapshot snapshot{first, {}};
    for (const Told& tile : tiles) {
      snapshot.manifest.shards.push_back(tile.shard->info);
      snapshot.holders.push_back(tile.holder);
    }
    return snapshot;
  }
  return std::nullopt;
}

}  // namespace stagecoach
