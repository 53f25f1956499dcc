#include "operations/mean_squared_error.h"

#include <algorithm>

#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

// The sum over one block, in double; gradient may be null or prediction.
template <typename T>
double Block(const T* prediction, const float* target, float factor, T* gradient, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float difference = static_cast<float>(prediction[i]) - target[i];
    sum += double{difference} * difference;
    if (gradient != nullptr) gradient[i] = T(difference * factor);
  }
  return sum;
}

// Blocks of a size of their own, so that the sum has one order.
template <typename T>
double Sum(CpuBackend& backend, const KernelArguments& a, bool gradient, double* partial) {
  const T* const prediction = a.inputs[0].data<T>();
  const float* const target = a.inputs[1].data<float>();
  const float factor = gradient ? 2.0f * a.inputs[2].data<float>()[0] : 0.0f;
  T* const d = gradient ? a.outputs[0].data<T>() : nullptr;
  const int64_t n = a.inputs[0].elements();
  backend.ForEachBlock(n, kElementBlock, [&](int64_t first, int64_t count, int) {
    partial[first / kElementBlock] =
        Block(prediction + first, target + first, factor, d == nullptr ? d : d + first, count);
  });
  double sum = 0;
  for (int64_t i = 0; i * kElementBlock < n; ++i) sum += partial[i];
  return sum;
}

absl::StatusOr<Kernel> Loss(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, gradient = AttributesOf<MeanSquaredErrorAttributes>(call).gradient](
                    const KernelContext&, const KernelArguments& a) {
    const int64_t n = a.inputs[0].elements(), blocks = n / kElementBlock + 1;
    auto* const partial = reinterpret_cast<double*>(
        backend.ReserveShared(blocks * static_cast<int64_t>(sizeof(double))));
    if (partial == nullptr) return;
    double* const sums = a.outputs[gradient ? 1 : 0].data<double>();
    sums[0] = IsBfloat16(a.inputs[0]) ? Sum<Bfloat16>(backend, a, gradient, partial)
                                      : Sum<float>(backend, a, gradient, partial);
    sums[1] = static_cast<double>(n);
  });
}

}  // namespace

KernelList MeanSquaredErrorKernels() { return {{"mean_squared_error", Loss}}; }

}  // namespace stagecoach::cpu
