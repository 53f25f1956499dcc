// How linear layers are cut into blocks on the cpu, the same in both precisions.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_LINEAR_BLOCKS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_LINEAR_BLOCKS_H_

#include <cstdint>

namespace stagecoach::cpu {

// Rows of a block. It is large enough for the product to run at full speed. It is small enough for
// a block of a wide layer to stay in the second cache until its activation has been computed.
inline constexpr int64_t kRowBlock = 128;
// Rows of a weight gradient (outputs of the layer) in a block. The product is 3 % slower at 64 and
// no faster at 192. The block is small enough for every thread to get some of a narrow layer.
inline constexpr int64_t kWeightBlock = 96;

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_LINEAR_BLOCKS_H_
