// Head by head as rms_norm row by row (operations/attention/head_norm.h).
#include "operations/attention/head_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "operations/attention/packed_heads.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

// Calls body(offset of a head in qkv, its place in rstd or -1, 0 for a query head and 1 for a key
// head).
template <typename Body>
void ForEachHead(const PackedHeads& packed, const Tensor& qkv, Body body) {
  const int64_t normed = packed.heads + packed.key_heads, heads = normed + packed.key_heads;
  for (int64_t unit = 0; unit < qkv.elements() / packed.head_width; ++unit) {
    const int64_t row = unit / heads, head = unit % heads;
    body(unit * packed.head_width, head < normed ? row * normed + head : -1,
         head < packed.heads ? 0 : 1);
  }
}

template <typename Attributes>
PackedHeads HeadsOf(const Call& call, const CallTypes& types) {
  const auto attributes = AttributesOf<Attributes>(call);
  return PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
}

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const double epsilon = AttributesOf<HeadNormAttributes>(call).epsilon;
  return Kernel([packed = HeadsOf<HeadNormAttributes>(call, types), epsilon](
                    const KernelContext&, const KernelArguments& a) {
    const int64_t width = packed.head_width;
    ForEachHead(packed, a.inputs[0], [&](int64_t offset, int64_t statistic, int which) {
      const float* x = a.inputs[0].data<float>() + offset;
      float* y = a.outputs[0].data<float>() + offset;
      if (statistic < 0) {
        std::copy_n(x, width, y);
        return;
      }
      const float* weight = a.inputs[1 + which].data<float>();
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += double{x[i]} * x[i];
      const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
      for (int64_t i = 0; i < width; ++i) y[i] = static_cast<float>(x[i] * rstd * weight[i]);
      a.outputs[1].data<float>()[statistic] = static_cast<float>(rstd);
    });
  });
}

absl::StatusOr<Kernel> InputGradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                     DType) {
  return Kernel([packed = HeadsOf<HeadNormGradientAttributes>(call, types)](
                    const KernelContext&, const KernelArguments& a) {
    const int64_t width = packed.head_width;
    ForEachHead(packed, a.inputs[0], [&](int64_t offset, int64_t statistic, int which) {
      const float *dy = a.inputs[0].data<float>() + offset, *x = a.inputs[1].data<float>() + offset;
      float* dx = a.outputs[0].data<float>() + offset;
      if (statistic < 0) {
        std::copy_n(dy, width, dx);
        return;
      }
      const float* weight = a.inputs[2 + which].data<float>();
      const double rstd = a.inputs[4].data<float>()[statistic];
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += double{dy[i]} * weight[i] * x[i];
      const double shared = rstd * rstd * sum / static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) {
        dx[i] = static_cast<float>(rstd * (double{dy[i]} * weight[i] - x[i] * shared));
      }
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                      DType) {
  return Kernel([packed = HeadsOf<HeadNormGradientAttributes>(call, types)](
                    const KernelContext&, const KernelArguments& a) {
    const int64_t width = packed.head_width;
    std::vector<double> sums(2 * width, 0.0);
    ForEachHead(packed, a.inputs[0], [&](int64_t offset, int64_t statistic, int which) {
      if (statistic < 0) return;
      const float *dy = a.inputs[0].data<float>() + offset, *x = a.inputs[1].data<float>() + offset;
      const double rstd = a.inputs[2].data<float>()[statistic];
      for (int64_t i = 0; i < width; ++i) sums[which * width + i] += double{dy[i]} * x[i] * rstd;
    });
    for (int which = 0; which < 2; ++which) {
      float* target = a.adds[which].data<float>();
      for (int64_t i = 0; i < width; ++i) target[i] += static_cast<float>(sums[which * width + i]);
    }
  });
}

}  // namespace

KernelList HeadNormKernels() {
  return {{"head_norm", Forward},
          {"head_norm_input_gradient", InputGradient},
          {"head_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::reference
