#include "network/lists/attention_calls.h"

#include "base/errors/check.h"
#include "operations/attention/attention.h"

namespace stagecoach {

std::vector<AttentionCall> AttentionCallsOf(const LayerLists& lists) {
  std::vector<AttentionCall> found;
  for (const ListedCall& listed : lists.forward.calls) {
    const Call& call = listed.call;
    if (call.operation != "attention") continue;
    const auto attributes = FromAttributes<AttentionAttributes>(call.attributes);
    CHECK_OK(attributes.status());
    const Shape& out = lists.value(call.outputs[0]).type.shape;
    const bool grouped = attributes->key_heads != attributes->heads;
    found.push_back({.context = out[0],
                     .heads = attributes->heads,
                     .width = out[1],
                     .dropout = attributes->dropout,
                     .key_heads = grouped ? attributes->key_heads : 0,
                     .full = attributes->full,
                     .keys = call.inputs.size() > 1});
  }
  return found;
}

}  // namespace stagecoach
