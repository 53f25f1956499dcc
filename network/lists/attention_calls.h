// The attentions of a layer: a planner and a stage ask a card's library about them. No library
// computes cross_attention.
#ifndef STAGECOACH_NETWORK_LISTS_ATTENTION_CALLS_H_
#define STAGECOACH_NETWORK_LISTS_ATTENTION_CALLS_H_

#include <cstdint>
#include <vector>

#include "network/lists/lists.h"

namespace stagecoach {

struct AttentionCall {
  int64_t context = 0, heads = 0, width = 0;
  double dropout = 0;     // in training
  int64_t key_heads = 0;  // 0: as many as heads
  bool full = false;      // no causal mask
  bool keys = false;      // lengths or documents say which columns exist
};

// The attentions in the order of the forward.
std::vector<AttentionCall> AttentionCallsOf(const LayerLists& lists);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_ATTENTION_CALLS_H_
