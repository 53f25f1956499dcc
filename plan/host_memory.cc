#include "plan/host_memory.h"

#include <algorithm>

#include "plan/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kScratchBytes = int64_t{1} << 20;  // of a thread at work
// Samples are cut into so many shares at most, of so many places at least.
constexpr int64_t kMostShares = 8, kLeastPlaces = 256;

int64_t SharesOf(int64_t samples, int64_t places) {
  const int64_t worth = (kLeastPlaces + places - 1) / std::max<int64_t>(places, 1);
  const int64_t each = std::max((samples + kMostShares - 1) / kMostShares, worth);
  return (samples + each - 1) / std::max<int64_t>(each, 1);
}

}  // namespace

int64_t HostWorkspaceBytes(const Network& model, int first, int last, int64_t samples) {
  int64_t most = 0;
  for (int layer = first; layer < last; ++layer) {
    const LayerLists& lists = *model.layers[static_cast<size_t>(layer)].lists;
    for (const ListedCall& listed : lists.forward.calls) {
      const Call& call = listed.call;
      if (!call.operation.ends_with("convolution")) continue;
      const int64_t weight = lists.value(call.inputs[1]).type.shape.elements() * kFloat;
      const Shape& places = lists.value(call.outputs[0]).type.shape;
      most = std::max(most, SaturatingMultiply(weight, SharesOf(samples, places[0] * places[1])));
    }
  }
  return most == 0 ? 0 : SaturatingAdd(most, kScratchBytes);
}

}  // namespace stagecoach
