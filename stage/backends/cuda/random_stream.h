// The random numbers of a kernel: stream and rate of a dropout.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_RANDOM_STREAM_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_RANDOM_STREAM_H_

#include "base/numbers/random.h"
#include "stage/backends/cuda/device_math.h"

namespace stagecoach::cuda {

inline PhiloxStream StreamOf(const RandomStream& stream) {
  const PhiloxKey key = SeedKey(stream.seed);
  const PhiloxCounter counter = stream.Block(0);
  return {key[0], key[1], counter[1], counter[2], counter[3]};
}

inline DropoutRule RuleOf(double rate) {
  return {DropoutThreshold(rate), static_cast<float>(1.0 / (1.0 - rate))};
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_RANDOM_STREAM_H_
