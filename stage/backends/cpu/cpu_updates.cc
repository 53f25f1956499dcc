// Updates and norms: blocks of a tensor that depend on its length alone, one pass over memory each.
#include <algorithm>

#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/lamb_rate.h"

namespace stagecoach::cpu {
namespace {

float* FloatsOrNull(const Tensor& tensor) {
  return tensor.valid() ? tensor.data<float>() : nullptr;
}
Bfloat16* RoundedOrNull(const Tensor& compute) {
  return compute.valid() ? compute.data<Bfloat16>() : nullptr;
}
template <typename T>
T* At(T* data, int64_t first) {
  return data == nullptr ? nullptr : data + first;
}

int64_t BlocksOf(const Tensor& tensor) {
  return (tensor.elements() + kElementBlock - 1) / kElementBlock;
}

// Its values are others behind this update.
void Rewritten(const Tensor& tensor) {
  if (tensor.valid()) tensor.buffer()->Rewritten();
}
template <typename Args>
void RewrittenByUpdate(const Args& args) {
  Rewritten(args.value);
  Rewritten(args.compute);
}

double SumInOrder(const double* partial, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += partial[i];
  return sum;
}

}  // namespace

void CpuBackend::Sgd(const SgdArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "sgd";
  RewrittenByUpdate(args);
  const SgdFactors factors = {args.gradient_scale, args.learning_rate, args.momentum,
                              args.weight_decay, args.nesterov};
  float *value = args.value.data<float>(), *gradient = args.gradient.data<float>();
  float* velocity = FloatsOrNull(args.velocity);
  Bfloat16* rounded = RoundedOrNull(args.compute);
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    SgdRange(value + first, gradient + first, At(velocity, first), At(rounded, first), count,
             factors);
  });
}

void CpuBackend::AdamW(const AdamWArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "adamw";
  RewrittenByUpdate(args);
  const AdamWFactors factors = {args.gradient_scale, args.learning_rate, args.beta1,
                                args.beta2,          args.epsilon,       args.weight_decay,
                                args.correction1,    args.correction2};
  float *value = args.value.data<float>(), *gradient = args.gradient.data<float>();
  float *m = args.m.data<float>(), *v = args.v.data<float>();
  Bfloat16* rounded = RoundedOrNull(args.compute);
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    AdamWRange(value + first, gradient + first, m + first, v + first, At(rounded, first), count,
               factors);
  });
}

void CpuBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  const float* x = tensor.data<float>();
  const int64_t blocks = BlocksOf(tensor);
  auto* partial = reinterpret_cast<double*>(
      ReserveShared(std::max<int64_t>(blocks, 1) * static_cast<int64_t>(sizeof(double))));
  if (partial == nullptr) return;
  ForEachBlock(tensor.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    partial[first / kElementBlock] = SumOfSquares(x + first, count);
  });
  result.data<double>()[0] = SumInOrder(partial, blocks);
}

void CpuBackend::RmsProp(const RmsPropArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "rmsprop";
  RewrittenByUpdate(args);
  const RmsPropFactors factors = {args.gradient_scale, args.inner_rate,  args.outer_rate,
                                  args.decay,          args.momentum,    args.inside,
                                  args.outside,        args.weight_decay};
  float *value = args.value.data<float>(), *gradient = args.gradient.data<float>();
  float *square = args.square.data<float>(), *velocity = FloatsOrNull(args.velocity);
  Bfloat16* rounded = RoundedOrNull(args.compute);
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    RmsPropRange(value + first, gradient + first, square + first, At(velocity, first),
                 At(rounded, first), count, factors);
  });
}

// A block's share of the norms is taken while the block is in the cache.
void CpuBackend::Lamb(const LambArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "lamb";
  RewrittenByUpdate(args);
  const AdamWFactors factors = {args.gradient_scale, args.learning_rate, args.beta1,
                                args.beta2,          args.epsilon,       args.weight_decay,
                                args.correction1,    args.correction2};
  float *value = args.value.data<float>(), *gradient = args.gradient.data<float>();
  float *m = args.m.data<float>(), *v = args.v.data<float>();
  const int64_t blocks = BlocksOf(args.value);
  auto* partial = reinterpret_cast<double*>(
      ReserveShared(std::max<int64_t>(blocks, 1) * 2 * static_cast<int64_t>(sizeof(double))));
  if (partial == nullptr) return;
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    LambDirectionRange(value + first, gradient + first, m + first, v + first, count, factors);
    partial[first / kElementBlock] = SumOfSquares(value + first, count);
    partial[blocks + first / kElementBlock] = SumOfSquares(gradient + first, count);
  });
  double* norms = args.norms.data<double>();
  norms[0] = SumInOrder(partial, blocks);
  norms[1] = SumInOrder(partial + blocks, blocks);
  const float rate = LambRate(args.adapt, args.learning_rate, norms[0], norms[1]);
  Bfloat16* rounded = RoundedOrNull(args.compute);
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    StepRange(value + first, gradient + first, At(rounded, first), count, rate);
  });
}

void CpuBackend::Average(const AverageArgs& args) {
  CHECK_EQ(args.value.elements(), args.average.elements()) << "average";
  Rewritten(args.average);
  const float* value = args.value.data<float>();
  float* average = args.average.data<float>();
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    AverageRange(value + first, average + first, count, args.rate);
  });
}

void CpuBackend::Swap(const Tensor& a, const Tensor& b) {
  CHECK_EQ(a.elements(), b.elements()) << "swap";
  Rewritten(a);
  Rewritten(b);
  float *x = a.data<float>(), *y = b.data<float>();
  ForEachBlock(a.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    std::swap_ranges(x + first, x + first + count, y + first);
  });
}

}  // namespace stagecoach::cpu
