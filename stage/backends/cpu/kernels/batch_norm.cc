// Statistics by columns, the rest by rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/batch_norm.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>
#include <cmath>
#include <vector>

#include "operations/batch_norm.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector-inl.h"
#include "stage/backends/moments.h"

#ifndef STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_BATCH_NORM_ONCE_
#define STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_BATCH_NORM_ONCE_
namespace stagecoach::cpu {

// By channel what a row's gradient is made of.
struct GradientRows {
  const float *weight, *mean, *rstd, *d_weight, *d_bias;
  float inverse;  // of the number of rows
};

}  // namespace stagecoach::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// total adds the squares of x - mean.
void CentredSquares(const ColumnBlock& block, const float* mean) {
  const F32 d;
  const float* x = block.operands[0];
  ForEachVector(block.columns, [&](int64_t i, auto at) HWY_ATTR {
    const auto own = at.Load(mean + block.column + i);
    auto sum = hn::Zero(d);
    for (int64_t r = 0; r < block.rows; ++r) {
      const auto centred = hn::Sub(at.Load(x + r * block.stride + i), own);
      sum = hn::MulAdd(centred, centred, sum);
    }
    at.Store(hn::Add(at.Load(block.total + i), sum), block.total + i);
  });
}

// total adds dy * xhat.
void NormalizedProducts(const ColumnBlock& block, const float* mean, const float* rstd) {
  const F32 d;
  const float *dy = block.operands[0], *x = block.operands[1];
  ForEachVector(block.columns, [&](int64_t i, auto at) HWY_ATTR {
    const auto own_mean = at.Load(mean + block.column + i);
    const auto own_rstd = at.Load(rstd + block.column + i);
    auto sum = hn::Zero(d);
    for (int64_t r = 0; r < block.rows; ++r) {
      const int64_t from = r * block.stride + i;
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + from), own_mean), own_rstd);
      sum = hn::MulAdd(at.Load(dy + from), xhat, sum);
    }
    at.Store(hn::Add(at.Load(block.total + i), sum), block.total + i);
  });
}

// Rows of `channels`; y may be x.
void BatchNormRows(const float* x, const float* mean, const float* rstd, const float* weight,
                   const float* bias, float* y, int64_t rows, int64_t channels) {
  for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    ForEachVector(channels, [=](int64_t i, auto at) HWY_ATTR {
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + i), at.Load(mean + i)), at.Load(rstd + i));
      at.Store(hn::MulAdd(xhat, at.Load(weight + i), at.Load(bias + i)), y + i);
    });
  }
}

// dx may be dy.
void BatchNormGradientRows(const GradientRows& by, const float* dy, const float* x, float* dx,
                           int64_t rows, int64_t channels) {
  const auto inverse = hn::Set(F32(), by.inverse);
  for (int64_t r = 0; r < rows; ++r, dy += channels, x += channels, dx += channels) {
    ForEachVector(channels, [&](int64_t i, auto at) HWY_ATTR {
      const auto rstd = at.Load(by.rstd + i);
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + i), at.Load(by.mean + i)), rstd);
      const auto mean = hn::MulAdd(xhat, at.Load(by.d_weight + i), at.Load(by.d_bias + i));
      const auto centred = hn::NegMulAdd(mean, inverse, at.Load(dy + i));
      at.Store(hn::Mul(hn::Mul(at.Load(by.weight + i), rstd), centred), dx + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(CentredSquares);
HWY_EXPORT(NormalizedProducts);
HWY_EXPORT(BatchNormRows);
HWY_EXPORT(BatchNormGradientRows);

namespace {

// result[channels] = the columns' sums.
void Sum(CpuBackend& backend, std::span<const Tensor> operands, int64_t channels, float* result,
         ColumnBody body) {
  std::fill_n(result, channels, 0.0f);
  SumColumns(backend, operands, channels, channels, result, body);
}

void AddColumns(const ColumnBlock& block) {
  ColumnSums(block.operands[0], block.total, block.rows, block.stride, block.columns);
}

// Inputs x, weight, bias; output y.
void Normalize(CpuBackend& backend, const KernelArguments& a, const float* mean,
               const float* rstd) {
  const int64_t channels = a.inputs[1].elements();
  const FloatInput x(a.inputs[0]);
  const FloatOutput y(a.outputs[0]);
  const float *weight = a.inputs[1].data<float>(), *bias = a.inputs[2].data<float>();
  backend.ForEachPiece(a.inputs[0], kSmallRowBlock, channels, 1,
                       [&](int64_t first, int64_t count, const Room& room) {
                         const int64_t start = first * channels, elements = count * channels;
                         HWY_DYNAMIC_DISPATCH(BatchNormRows)
                         (x.Read(start, elements, room[0]), mean, rstd, weight, bias,
                          y.At(start, room[0]), count, channels);
                         y.Finish(start, elements, room[0]);
                       });
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<BatchNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[1].elements();
    const float inverse =
        1.0f / static_cast<float>(std::max<int64_t>(1, a.inputs[0].elements() / channels));
    float *mean = a.outputs[1].data<float>(), *rstd = a.outputs[2].data<float>();
    float* variance = a.outputs[3].data<float>();
    const Tensor operands[] = {a.inputs[0]};
    Sum(backend, operands, channels, mean, AddColumns);
    for (int64_t c = 0; c < channels; ++c) mean[c] *= inverse;
    Sum(backend, operands, channels, variance, [mean](const ColumnBlock& block) {
      HWY_DYNAMIC_DISPATCH(CentredSquares)(block, mean);
    });
    for (int64_t c = 0; c < channels; ++c) {
      variance[c] *= inverse;
      rstd[c] = 1.0f / std::sqrt(variance[c] + epsilon);
    }
    Normalize(backend, a, mean, rstd);
  });
}

absl::StatusOr<Kernel> Fixed(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<BatchNormFixedAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    const float *mean = a.inputs[3].data<float>(), *variance = a.inputs[4].data<float>();
    std::vector<float> rstd(static_cast<size_t>(a.inputs[4].elements()));
    for (size_t c = 0; c < rstd.size(); ++c) rstd[c] = 1.0f / std::sqrt(variance[c] + epsilon);
    Normalize(backend, a, mean, rstd.data());
  });
}

absl::StatusOr<Kernel> Fold(CpuBackend&, const Call& call, const CallTypes&, DType) {
  return FoldMoments(call);
}

absl::StatusOr<Kernel> Commit(CpuBackend&, const Call& call, const CallTypes&, DType) {
  return CommitMoments(call);
}

absl::StatusOr<Kernel> Sums(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[2].elements();
    const float *mean = a.inputs[2].data<float>(), *rstd = a.inputs[3].data<float>();
    const Tensor operands[] = {a.inputs[0], a.inputs[1]};
    Sum(backend, operands, channels, a.outputs[0].data<float>(),
        [mean, rstd](const ColumnBlock& block) {
          HWY_DYNAMIC_DISPATCH(NormalizedProducts)(block, mean, rstd);
        });
    Sum(backend, std::span(operands).first(1), channels, a.outputs[1].data<float>(), AddColumns);
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[2].elements();
    const int64_t rows = std::max<int64_t>(1, a.inputs[0].elements() / channels);
    const GradientRows by = {a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                             a.inputs[4].data<float>(), a.inputs[5].data<float>(),
                             a.inputs[6].data<float>(), 1.0f / static_cast<float>(rows)};
    const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
    const FloatOutput dx(a.outputs[0]);
    backend.ForEachPiece(a.inputs[0], kSmallRowBlock, channels, 2,
                         [&](int64_t first, int64_t count, const Room& room) {
                           const int64_t start = first * channels, elements = count * channels;
                           HWY_DYNAMIC_DISPATCH(BatchNormGradientRows)
                           (by, dy.Read(start, elements, room[0]), x.Read(start, elements, room[1]),
                            dx.At(start, room[0]), count, channels);
                           dx.Finish(start, elements, room[0]);
                         });
  });
}

}  // namespace

KernelList BatchNormKernels() {
  return {{"batch_norm", Forward},
          {"batch_norm_sums", Sums},
          {"batch_norm_input_gradient", InputGradient},
          {"batch_norm_fixed", Fixed},
          {"batch_norm_fold", Fold},
          {"batch_norm_commit", Commit}};
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
