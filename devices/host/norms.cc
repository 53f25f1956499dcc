// Norms: tables of numbers by chunk of rows or by head.
#include <algorithm>

#include "base/numbers/saturate.h"
#include "devices/host/host_calls.h"

namespace stagecoach {
namespace {

constexpr int64_t kChunkElements = 32768;  // of batch norm
constexpr int64_t kFoldedChannels = 64;    // rows of fewer are walked several at a time

// Two numbers of each channel by chunk. Where rows are folded, a chunk has from half of
// kChunkElements on, or one row.
int64_t MomentsBytes(const ValueType& x, int64_t samples) {
  const int64_t elements = TypeElements(x, samples), channels = x.shape.back();
  const int64_t width = std::max<int64_t>(channels, kFoldedChannels);
  const int64_t chunks = BlocksOf(elements, std::max(kChunkElements / 2, channels)) + 1;
  return SaturatingMultiply(SaturatingMultiply(chunks, 2 * kFloat32Bytes), width);
}

// operands: that a chunk reads at once.
CallDescription DescribeChunks(const HostCall& of, int64_t operands) {
  CallDescription description = DescribeRest(of);
  const ValueType& x = of.types.inputs[0];
  const int64_t widened =
      of.narrow ? operands * kFloat32Bytes * std::max(kChunkElements, x.shape.back()) : 0;
  description.Raise(widened, MomentsBytes(x, of.samples));
  return description;
}

CallDescription DescribeBatchNorm(const HostCall& of) { return DescribeChunks(of, 1); }
CallDescription DescribeBatchNormSums(const HostCall& of) { return DescribeChunks(of, 2); }

CallDescription DescribeHeadNormWeights(const HostCall& of) {
  CallDescription description = DescribeRest(of);
  description.Raise(0, kFloat32Bytes * of.types.inputs[0].shape.back());
  return description;
}

}  // namespace

HostEntries NormsOnHost() {
  return {{"batch_norm", DescribeBatchNorm},
          {"batch_norm_sums", DescribeBatchNormSums},
          {"head_norm_weight_gradient", DescribeHeadNormWeights}};
}

}  // namespace stagecoach
