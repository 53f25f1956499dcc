// Losses: a table of all rows, or a sum for each block.
#include <algorithm>

#include "base/numbers/saturate.h"
#include "devices/host/host_calls.h"

namespace stagecoach {
namespace {

constexpr int64_t kRowBytes = 4 * kFloat64Bytes + kFloat32Bytes;  // sums and a guess

CallDescription DescribeLoss(const HostCall& of) {
  const ValueType& output = of.types.inputs[0];
  const int64_t rows = RuntimeShape(output, of.samples)[0];
  const int64_t elements = TypeElements(output, of.samples);
  const int64_t widest = SaturatingRoundUp(output.shape.back(), 16);
  return {.room = of.narrow ? kFloat32Bytes * std::max(kPieceElements, widest) : 0,
          .shared = std::max(SaturatingMultiply(rows, kRowBytes),
                             kFloat64Bytes * (elements / kBlockElements + 1))};
}

}  // namespace

HostEntries LossesOnHost() {
  return {{"cross_entropy", DescribeLoss}, {"mean_squared_error", DescribeLoss}};
}

}  // namespace stagecoach
