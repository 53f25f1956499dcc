#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/fma_peak.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Runs `iterations` of 16 independent multiply-adds and returns their operations; the sum goes to
// *sink so that nothing is optimised away.
double FmaLoop(int64_t iterations, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 1e-3f);
  hn::Vec<decltype(d)> sums[16];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t i = 0; i < iterations; ++i) {
    for (auto& sum : sums) sum = hn::MulAdd(sum, factor, term);
  }
  for (int i = 1; i < 16; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  *sink = hn::GetLane(hn::SumOfLanes(d, sums[0]));
  return static_cast<double>(iterations) * 16 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <time.h>

#include "bench/fma_peak.h"

namespace stagecoach {
namespace {

double SecondsOfClock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

HWY_EXPORT(FmaLoop);

double ThreadSeconds() { return SecondsOfClock(CLOCK_THREAD_CPUTIME_ID); }
double WallSeconds() { return SecondsOfClock(CLOCK_MONOTONIC); }

double MeasureFmaPeak(const std::function<double()>& now) {
  volatile float keep = 0;
  float sum = 0;
  const double start = now();
  const double operations = HWY_DYNAMIC_DISPATCH(FmaLoop)(200000, &sum);
  const double seconds = now() - start;
  keep = sum;
  static_cast<void>(keep);
  return operations / seconds / 1e9;
}

}  // namespace stagecoach

#endif  // HWY_ONCE
