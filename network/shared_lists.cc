#include "network/shared_lists.h"

#include <tuple>

#include "base/errors/status.h"

namespace stagecoach {
namespace {

constexpr size_t kMostKnown = 64;

}  // namespace

absl::Status SharedLists::Set(LayerGraph graph, NetworkLayer* layer) {
  auto known = known_.begin();
  while (known != known_.end() && *known->first != graph) ++known;
  if (known != known_.end()) {
    known_.splice(known_.begin(), known_, known);
  } else {
    auto shared = std::make_shared<const LayerGraph>(std::move(graph));
    ASSIGN_OR_RETURN(LayerLists derived, TryDifferentiate(*shared));
    auto lists = std::make_shared<const LayerLists>(std::move(derived));
    if (known_.size() == kMostKnown) known_.pop_back();
    known_.emplace_front(std::move(shared), std::move(lists));
  }
  std::tie(layer->graph, layer->lists) = known_.front();
  return absl::OkStatus();
}

}  // namespace stagecoach
