// Nominal FLOPs per element outside matrix products, so that no layer is free. The cost model and
// the simulated device use the same numbers, so that a run can check a forecast.
#ifndef STAGECOACH_OPERATIONS_ELEMENTWISE_FLOPS_H_
#define STAGECOACH_OPERATIONS_ELEMENTWISE_FLOPS_H_

#include <cstdint>

namespace stagecoach {

struct ElementwiseFlops {
  int64_t forward = 0;
  int64_t backward = 0;  // both parts together; half each if there are two
};

inline constexpr ElementwiseFlops kEmbeddingFlops{2, 2};
inline constexpr ElementwiseFlops kLayerNormFlops{8, 14};
inline constexpr ElementwiseFlops kRmsNormFlops{5, 12};
inline constexpr ElementwiseFlops kGeluFlops{12, 16};
inline constexpr ElementwiseFlops kSiluFlops{10, 14};
inline constexpr ElementwiseFlops kReluFlops{1, 1};
inline constexpr ElementwiseFlops kClipFlops{2, 2};
inline constexpr ElementwiseFlops kSwigluFlops{11, 18};
inline constexpr ElementwiseFlops kRotaryFlops{3, 3};
inline constexpr ElementwiseFlops kDropoutFlops{12, 12};  // draws random numbers each time
inline constexpr ElementwiseFlops kSoftmaxFlops{8, 8};    // per score
inline constexpr ElementwiseFlops kAddFlops{1, 1};
inline constexpr ElementwiseFlops kBatchNormFlops{8, 14};
inline constexpr ElementwiseFlops kGroupNormFlops{8, 14};
inline constexpr int64_t kScaleAndShiftFlops = 2;
inline constexpr int64_t kMomentFlops = 12;  // for a channel, once a micro-batch or step
inline constexpr int64_t kPoolFlops = 1;     // per element of a window
inline constexpr int64_t kMoveFlops = 1;
inline constexpr int64_t kSquaredErrorFlops = 4;

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ELEMENTWISE_FLOPS_H_
