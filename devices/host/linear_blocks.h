// How linear maps are cut into blocks on a processor. The kernels (stage/backends/cpu/products) and
// the description of their memory (products.cc) share the numbers.
#ifndef STAGECOACH_DEVICES_HOST_LINEAR_BLOCKS_H_
#define STAGECOACH_DEVICES_HOST_LINEAR_BLOCKS_H_

#include <cstdint>

namespace stagecoach {

// Rows of a block. It is large enough for the product to run at full speed. It is small enough for
// a block of a wide layer to stay in the second cache until its activation has been computed.
inline constexpr int64_t kRowBlock = 128;
// Rows of a weight gradient (outputs of the layer) in a block. The product is 3 % slower at 64 and
// no faster at 192. The block is small enough for every thread to get some of a narrow layer.
inline constexpr int64_t kWeightBlock = 96;

// In bfloat16: most columns of a panel. 128 rows of float32 sums are half of a second cache of 1 MiB.
inline constexpr int64_t kPanelColumns = 1024;
// In bfloat16: rows that a weight gradient adds at a time. It bounds the reordered or widened copy of
// them.
inline constexpr int64_t kGradientRows = 512;

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_HOST_LINEAR_BLOCKS_H_
