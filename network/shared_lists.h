// SharedLists: the lists of a network's layers while it is made: a network has few different layers and many of each,
// so equal graphs share theirs and are differentiated once.
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
  // Gives the layer this graph and the lists that follow from it. INVALID_ARGUMENT: it cannot be trained.
  absl::Status Set(LayerGraph graph, NetworkLayer* layer);

 private:
  // Those used last, first; others are forgotten, so that a network of many different layers is not searched for long.
  std::list<std::pair<std::shared_ptr<const LayerGraph>, std::shared_ptr<const LayerLists>>> known_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_SHARED_LISTS_H_
