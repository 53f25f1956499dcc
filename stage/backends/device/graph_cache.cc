#include "stage/backends/device/graph_cache.h"

#include <iterator>
#include <utility>

#include "base/errors/check.h"

namespace stagecoach {

GraphCache::Entry* GraphCache::Find(const Signature& signature) {
  const auto found = by_signature_.find(absl::MakeConstSpan(signature));
  if (found == by_signature_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front();
}

GraphCache::Entry* GraphCache::Add(const Signature& signature) {
  if (entries_.size() == most_) Drop(std::prev(entries_.end()));
  entries_.push_front({.signature = signature});
  const bool added =
      by_signature_.emplace(absl::MakeConstSpan(entries_.front().signature), entries_.begin())
          .second;
  CHECK(added) << "a list that is there already";
  return &entries_.front();
}

void GraphCache::Refuse(Entry* entry) {
  DestroyGraph(entry);
  entry->refused = true;
}

void GraphCache::Clear() {
  while (!entries_.empty()) Drop(entries_.begin());
}

void GraphCache::Drop(Entries::iterator entry) {
  DestroyGraph(&*entry);
  by_signature_.erase(absl::MakeConstSpan(entry->signature));
  entries_.erase(entry);
}

// A card that has failed answers with its failure, which others have noted.
void GraphCache::DestroyGraph(Entry* entry) {
  if (entry->graph != nullptr) api_->Destroy(std::exchange(entry->graph, nullptr));
}

}  // namespace stagecoach
