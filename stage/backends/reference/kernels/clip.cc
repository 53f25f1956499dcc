// operations/pointwise/clip.h
#include "operations/pointwise/clip.h"

#include <cmath>

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

float LimitOf(const Call& call) {
  return static_cast<float>(AttributesOf<ClipAttributes>(call).limit);
}

absl::StatusOr<Kernel> Clip(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return Kernel([limit = LimitOf(call)](const KernelContext&, const KernelArguments& a) {
    const float* x = a.inputs[0].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) {
      y[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];  // a NaN stays one
    }
  });
}

absl::StatusOr<Kernel> Gradient(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return Kernel([limit = LimitOf(call)](const KernelContext&, const KernelArguments& a) {
    const float *dy = a.inputs[0].data<float>(), *x = a.inputs[1].data<float>();
    float* dx = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) {
      dx[i] = std::abs(x[i]) <= limit ? dy[i] : 0.0f;
    }
  });
}

}  // namespace

KernelList ClipKernels() { return {{"clip", Clip}, {"clip_gradient", Gradient}}; }

}  // namespace stagecoach::reference
