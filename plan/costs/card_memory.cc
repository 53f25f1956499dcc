#include "plan/costs/card_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "devices/card/describe.h"
#include "network/passes/head_chunks.h"
#include "plan/costs/layer_calls.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

std::string KernelsOnCard(const CardProfile& card, const Network& network) {
  std::string text;
  for (const NetworkLayer& layer : network.layers) {
    const LayerLists& lists = *layer.lists;
    for (const ListedCall& listed : lists.forward.calls) {
      const Call& call = listed.call;
      const CallDescription described =
          DescribeOnCard(card, call, lists.TypesOf(call), 1, network.precision);
      if (described.way.empty()) continue;
      if (!described.why.empty()) {
        return absl::StrCat(call.operation, ": by own, slower kernels, as ", described.why);
      }
      text = absl::StrCat(call.operation, ": through ", described.way, ", where the stage has it");
    }
  }
  return text;
}

std::string HeadOnCard(const Network& network) {
  if (!HeadGoesByChunks(network)) return "";
  return absl::StrCat("with the loss by ", HeadChunkRows(network, kCardHeadChunks),
                      " rows at a time");
}

int64_t CallBytesOnCard(const CardProfile& card, const Network& network, int first, int last,
                        int64_t batch_size, int64_t micro_batches) {
  int64_t most = 0;
  // Of two sizes of micro-batches the smaller one may fill its slices better.
  for (const int64_t i : {int64_t{0}, micro_batches - 1}) {
    const int64_t samples = MicroBatchSize(batch_size, micro_batches, i);
    for (int layer = first; layer < last; ++layer) {
      ForEachCall(*network.layers[static_cast<size_t>(layer)].lists,
                  [&](const Call& call, const CallTypes& types, bool) {
                    most = std::max(
                        most, DescribeOnCard(card, call, types, samples, network.precision).shared);
                  });
    }
  }
  return most;
}

}  // namespace stagecoach
