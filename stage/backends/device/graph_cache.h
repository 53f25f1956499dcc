// GraphCache: the state of each list of calls, by its signature: seen once, a graph, or not to be
// captured. If there are too many, it drops the least recently used one. So a step with more lists
// than fit captures nothing: each is forgotten before it comes again.
// Ownership: owns the graphs; borrows the api.
// Threads:   one, with the card current.
// Units and shapes: a signature is the words that CallQueue makes of its calls.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_CACHE_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "stage/backends/device/graph_api.h"

namespace stagecoach {

class GraphCache {
 public:
  using Signature = std::vector<uint64_t>;
  struct Entry {
    Signature signature;
    DeviceGraph graph = nullptr;  // null: none yet, or `refused`
    bool refused = false;         // launched call by call for good
  };

  GraphCache(GraphApi* api, size_t most) : api_(api), most_(most) {}
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;
  ~GraphCache() { Clear(); }

  Entry* Find(const Signature& signature);  // null: not seen, or forgotten
  Entry* Add(const Signature& signature);   // only if Find returns null
  void Refuse(Entry* entry);
  void Clear();

  size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<Entry>;  // most recently used first

  void Drop(Entries::iterator entry);
  void DestroyGraph(Entry* entry);

  GraphApi* const api_;
  const size_t most_;
  Entries entries_;
  absl::flat_hash_map<absl::Span<const uint64_t>, Entries::iterator> by_signature_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_GRAPH_CACHE_H_
