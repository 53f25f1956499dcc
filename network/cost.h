// Costs of a layer, c_i of the paper, by walking its lists: nothing is written down a second time.
// Units and shapes: FLOPs and bytes of one sample, a multiply-add is two FLOPs; elementwise work counts a
//            nominal number of FLOPs per element, so that no layer is free.
// Errors:    none; sizes were limited when the network was made.
#ifndef STAGECOACH_NETWORK_COST_H_
#define STAGECOACH_NETWORK_COST_H_

#include <cstdint>

#include "base/dtype.h"
#include "network/lists.h"

namespace stagecoach {

struct ListCost {
  int64_t products = 0;  // FLOPs of matrix products of a forward: what MFU counts
  int64_t forward_flops = 0;
  int64_t backward_flops = 0;  // input and weight part together
};
ListCost CostOfLists(const LayerLists& lists);

// The most random numbers that a call draws from its stream for one sample.
int64_t MostDrawn(const LayerLists& lists);

struct ListMemory {
  int64_t outputs = 0;
  int64_t stash = 0;          // kept from forward to backward
  bool keeps_inputs = false;  // all inputs are parts of the stash
  // Peak of what the joint backward allocates less what it has given back by then, on top of the stash
  // and the output gradients.
  int64_t backward_scratch = 0;
  // Peak of a forward that keeps the stash: all that it makes, on top of its inputs, which the stash may
  // take over.
  int64_t forward = 0;
  // Peak of a forward that keeps nothing: its outputs and what it makes for a while, on top of its inputs.
  int64_t forward_alone = 0;
};
// Bytes for so many samples: what is there once for all of them counts once.
ListMemory MemoryOfLists(const LayerLists& lists, DType activation, int64_t samples = 1);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_COST_H_
