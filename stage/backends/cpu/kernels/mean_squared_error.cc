#include "operations/losses/mean_squared_error.h"

#include <algorithm>

#include "operations/losses/loss_types.h"
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

// The same of elements of several samples, each with its weight: `numbers` elements a sample, the
// first one being element `first` of all.
template <typename T>
double WeightedBlock(const T* prediction, const float* target, const float* weights, float factor,
                     T* gradient, int64_t first, int64_t n, int64_t numbers) {
  double sum = 0;
  for (int64_t i = 0, count = 0; i < n; i += count) {
    const int64_t sample = (first + i) / numbers;
    count = std::min(n - i, (sample + 1) * numbers - (first + i));
    const float weight = weights[sample];
    T* const to = gradient == nullptr ? nullptr : gradient + i;
    if (weight != 0) {
      sum += weight * Block(prediction + i, target + i, factor * weight, to, count);
    } else if (to != nullptr) {
      std::fill_n(to, count, T(0.0f));
    }
  }
  return sum;
}

// Blocks of a size of their own, so that the sum has one order.
template <typename T>
double Sum(CpuBackend& backend, const KernelArguments& a, const LossForm& form, double* partial) {
  const T* const prediction = a.inputs[0].data<T>();
  const float* const target = a.inputs[1].data<float>();
  const float* const weights = form.weighted ? a.inputs[2].data<float>() : nullptr;
  const float factor = form.gradient ? 2.0f * a.inputs[ScalePlace(form)].data<float>()[0] : 0.0f;
  T* const d = form.gradient ? a.outputs[0].data<T>() : nullptr;
  const int64_t n = a.inputs[0].elements();
  const int64_t numbers = form.weighted ? n / a.inputs[2].elements() : n;  // of a sample
  backend.ForEachBlock(n, kElementBlock, [&](int64_t first, int64_t count, int) {
    T* const to = d == nullptr ? d : d + first;
    partial[first / kElementBlock] =
        weights == nullptr ? Block(prediction + first, target + first, factor, to, count)
                           : WeightedBlock(prediction + first, target + first, weights, factor, to,
                                           first, count, numbers);
  });
  double sum = 0;
  for (int64_t i = 0; i * kElementBlock < n; ++i) sum += partial[i];
  return sum;
}

// What all elements weigh.
double Terms(const Tensor& prediction, const Tensor* weights) {
  if (weights == nullptr) return static_cast<double>(prediction.elements());
  double sum = 0;
  for (int64_t s = 0; s < weights->elements(); ++s) sum += weights->data<float>()[s];
  return sum * static_cast<double>(prediction.elements() / weights->elements());
}

absl::StatusOr<Kernel> Loss(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, attributes = AttributesOf<MeanSquaredErrorAttributes>(call)](
                    const KernelContext&, const KernelArguments& a) {
    const LossForm form{attributes.weighted, attributes.gradient};
    const int64_t n = a.inputs[0].elements(), blocks = n / kElementBlock + 1;
    auto* const partial = reinterpret_cast<double*>(
        backend.ReserveShared(blocks * static_cast<int64_t>(sizeof(double))));
    if (partial == nullptr) return;
    double* const sums = a.outputs[form.gradient ? 1 : 0].data<double>();
    sums[0] = IsBfloat16(a.inputs[0]) ? Sum<Bfloat16>(backend, a, form, partial)
                                      : Sum<float>(backend, a, form, partial);
    sums[1] = Terms(a.inputs[0], form.weighted ? &a.inputs[2] : nullptr);
  });
}

}  // namespace

KernelList MeanSquaredErrorKernels() { return {{"mean_squared_error", Loss}}; }

}  // namespace stagecoach::cpu
