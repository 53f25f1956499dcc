// The peak that benchmarks compare with: float32 multiply-adds per second of the calling thread.
// They use registers only, and the widest instruction set that the kernels would use.
#ifndef STAGECOACH_BENCH_FMA_PEAK_H_
#define STAGECOACH_BENCH_FMA_PEAK_H_

#include <functional>

namespace stagecoach {

// ThreadSeconds counts this thread's own computing, so other programs on the machine disturb it
// less. If several threads work, use the wall clock, WallSeconds.
double ThreadSeconds();
double WallSeconds();

// GFLOP/s, a multiply-add counted as two; `now` gives seconds. Takes some milliseconds.
double MeasureFmaPeak(const std::function<double()>& now);

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_FMA_PEAK_H_
