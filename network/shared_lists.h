// SharedLists: the lists of a network's layers while the network is made. Many layers have equal
// graphs. These share their lists and are differentiated once.
// Ownership: shares graphs and lists with the layers.
// Threads:   thread-compatible.
#ifndef STAGECOACH_NETWORK_SHARED_LISTS_H_
#define STAGECOACH_NETWORK_SHARED_LISTS_H_

#include <list>
#include <memory>
#include <utility>

#include "network/network.h"

namespace stagecoach {

class SharedLists {
 public:
  // Gives the layer this graph and its lists. INVALID_ARGUMENT: it cannot be trained.
  absl::Status Set(LayerGraph graph, NetworkLayer* layer);

 private:
  // The last used ones come first. Others are forgotten, so that the search stays short in a
  // network of many different layers.
  std::list<std::pair<std::shared_ptr<const LayerGraph>, std::shared_ptr<const LayerLists>>> known_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_SHARED_LISTS_H_
