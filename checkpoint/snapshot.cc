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

// Finds shards that together have each of the layers [0, layers) once.
class Tiling {
 public:
  Tiling(const std::vector<Told>& shards, int layers)
      : covered_(static_cast<size_t>(layers), false) {
    for (const Told& told : shards) {
      for (const LayerRange& cell : told.shard->layers) from_[cell.first].push_back(told);
    }
  }

  // Empty: there are none.
  std::vector<Told> Find() {
    return Cover() ? std::move(tiles_) : std::vector<Told>();
  }

 private:
  // Several cuts may be mixed, of recoveries; more tries than that are somebody's nonsense.
  static constexpr size_t kMostTries = 4096;

  bool Cover() {
    const auto gap = std::find(covered_.begin(), covered_.end(), false);
    if (gap == covered_.end()) return true;
    if (hopeless_.size() >= kMostTries || hopeless_.contains(covered_)) return false;
    const auto found = from_.find(static_cast<int>(gap - covered_.begin()));
    if (found == from_.end()) return false;
    for (const Told& told : found->second) {
      if (!Fits(*told.shard)) continue;
      Set(*told.shard, true);
      tiles_.push_back(told);
      if (Cover()) return true;
      tiles_.pop_back();
      Set(*told.shard, false);
    }
    hopeless_.insert(covered_);
    return false;
  }
  bool Fits(const HeldShard& shard) const {
    int last = 0;
    for (const LayerRange& cell : shard.layers) {
      if (cell.first < last || cell.last <= cell.first || cell.last > std::ssize(covered_)) {
        return false;
      }
      last = cell.last;
      if (std::find(covered_.begin() + cell.first, covered_.begin() + cell.last, true) !=
          covered_.begin() + cell.last) {
        return false;
      }
    }
    return true;
  }
  void Set(const HeldShard& shard, bool value) {
    for (const LayerRange& cell : shard.layers) {
      std::fill(covered_.begin() + cell.first, covered_.begin() + cell.last, value);
    }
  }

  std::map<int, std::vector<Told>> from_;  // by the first layer of a cell
  std::vector<bool> covered_;              // by layer
  std::vector<Told> tiles_;
  std::set<std::vector<bool>> hopeless_;
};

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

// Those of one text first, as of one cut: a search among many cuts may end without an answer.
std::vector<Told> FindTiles(const std::vector<Told>& told, int layers) {
  std::map<const Manifest*, std::vector<Told>> cuts;
  for (const Told& one : told) cuts[one.manifest].push_back(one);
  std::vector<Told> tiles;
  for (const Told& first : told) {
    const auto cut = cuts.find(first.manifest);
    if (cut == cuts.end()) continue;
    if (cuts.size() > 1) tiles = Tiling(cut->second, layers).Find();
    if (!tiles.empty()) return tiles;
    if (cuts.size() > 1) cut->second.clear();
  }
  return Tiling(told, layers).Find();
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
      const std::vector<Told> tiles = FindTiles(told, layers);
      if (tiles.empty()) continue;
      return Whole(tiles);
    }
  }
  return std::nullopt;
}

}  // namespace stagecoach
