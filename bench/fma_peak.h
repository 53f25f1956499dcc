// The peak that benchmarks compare with: float32 multiply-adds per second of the calling thread, on
// the widest instruction set that the kernels would use, from registers only.
#ifndef STAGECOACH_BENCH_FMA_PEAK_H_
#define STAGECOACH_BENCH_FMA_PEAK_H_

#include <functional>

namespace stagecoach {

// Seconds of this thread's own computing (other programs on the machine cost less accuracy so), or
// of the wall clock where several threads work.
double ThreadSeconds();
double WallSeconds();

// GFLOP/s, a multiply-add counted as two; `now` gives seconds. Takes some milliseconds.
double MeasureFmaPeak(const std::function<double()>& now);

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_FMA_PEAK_H_
