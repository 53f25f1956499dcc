// Whether oneDNN can use AVX2. Without AVX2 a convolution's gradient goes by columns. These read
// the weight in its own order, so nothing is packed for it.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_TESTING_AVX2_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_TESTING_AVX2_H_

#include <string>

#include "stage/backends/cpu/primitives/matmul.h"

namespace stagecoach::cpu {

inline constexpr char kNoAvx2[] = "this processor has no AVX2";

inline bool HasAvx2() {
  const std::string library = OneDnnFingerprint();
  return library.find("avx2") != std::string::npos || library.find("avx512") != std::string::npos;
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_TESTING_AVX2_H_
