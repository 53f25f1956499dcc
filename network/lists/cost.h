// Costs of a layer, c_i of the paper, derived from its lists alone.
// Units and shapes: FLOPs and bytes are of one sample, unless stated. A multiply-add is two FLOPs.
//            Elementwise work counts a nominal number of FLOPs per element, so that no layer is
//            free.
// Errors:    none; sizes were limited when the network was made.
#ifndef STAGECOACH_NETWORK_LISTS_COST_H_
#define STAGECOACH_NETWORK_LISTS_COST_H_

#include <cstdint>
#include <vector>

#include "base/numbers/dtype.h"
#include "network/lists/lists.h"

namespace stagecoach {

struct ListCost {
  int64_t products = 0;  // FLOPs of matrix products of a forward, for MFU
  int64_t forward_flops = 0;
  int64_t backward_flops = 0;  // input and weight part together
  int64_t backward_products = 0;
};
ListCost CostOfLists(const LayerLists& lists);
int64_t EvaluationFlops(const LayerLists& lists);  // of one sample

// Upper bound of the random numbers that a call draws from its stream for one sample.
int64_t MostDrawn(const LayerLists& lists);

// Bytes kept from forward to backward for these samples. A value that exists once for all of them
// counts once.
int64_t StashBytes(const LayerLists& lists, DType activation, int64_t samples = 1);

// Bytes of the accumulators, which gather over the micro-batches of a step for the states.
int64_t AccumulatorBytes(const LayerLists& lists);

// Peak of the bytes that a list has allocated and not yet freed, beyond those at its beginning.
// `staying`: values that others hold for longer.
int64_t PeakOfList(const LayerLists& lists, const CallList& list, DType activation,
                   const std::vector<ValueId>& staying, int64_t samples = 1);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_COST_H_
