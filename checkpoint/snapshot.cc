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
         a.dataset_sha256 == b.dataset_sha256 && a.base_sha256 == b.base_sha256 &&
         a.fingerprint == b.fingerprint;
}

// Shards from layer 0 to the last one, each beginning where the one before ends. From the end: what
// a layer is followed by is known when it is looked at.
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

// Those that say the same, by groups, the largest first. Several groups: somebody is wrong, and
// what is whole in the eyes of most is no worse than a checkpoint.
std::vector<std::vector<Told>> Agreed(const std::vector<Told>& told) {
  std::vector<std::vector<Told>> groups;
  for (const Told& one : told) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&one](const std::vector<Told>& others) {
          return SayTheSame(*one.manifest, *others.front().manifest);
        });
    if (group == groups.end()) {
      groups.push_back({one});
    } else {
      group->push_back(one);
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return groups;
}

Snapshot Whole(std::vector<Told> tiles) {
  std::sort(tiles.begin(), tiles.end(), [](const Told& a, const Told& b) {  // as in manifests
    return a.shard->info.file < b.shard->info.file;
  });
  Snapshot snapshot{*tiles.front().manifest, {}};
  for (const Told& tile : tiles) {
    snapshot.manifest.shards.push_back(tile.shard->info);
    snapshot.holders.push_back(tile.holder);
  }
  return snapshot;
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
      const std::optional<Manifest>& manifest = text->second;
      if (!manifest.has_value() || manifest->state.step != shard.step) continue;
      if (!manifest->shards.empty()) continue;  // it is not what a coordinator asked with
      by_step[shard.step].push_back({static_cast<int>(holder), &shard, &*text->second});
    }
  }
  for (const auto& [step, all_told] : by_step) {
    for (const std::vector<Told>& told : Agreed(all_told)) {
      std::vector<Told> tiles = Tile(told, layers);
      if (tiles.empty()) continue;
      return Whole(std::move(tiles));
    }
  }
  return std::nullopt;
}

}  // namespace stagecoach
