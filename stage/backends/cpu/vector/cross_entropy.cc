#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/vector/cross_entropy.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include "hwy/contrib/math/math-inl.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// In double, because the loss is summed over many rows; by vector, because the C library's
// logarithm may differ between machines.
double LogOf(double x) {
  const hn::ScalableTag<double> d;
  return hn::GetLane(hn::Log(d, hn::Set(d, x)));
}

double CrossEntropyRow(const float* logits, int32_t target, float scale, float* d_logits,
                       int64_t vocabulary) {
  const F32 d;
  // A copy of the first logit in every lane stands in for the lanes beyond the end.
  auto largest = hn::Set(d, logits[0]);
  const auto first = largest;
  ForEachVector(vocabulary, [&](int64_t i, auto at) HWY_ATTR {
    largest = hn::Max(largest, at.Select(at.Load(logits + i), first));
  });
  const float row_largest = Largest(largest);
  const double target_logit = logits[target];
  const auto shift = hn::Set(d, row_largest);
  auto sum = hn::Zero(d);
  ForEachVector(vocabulary, [&](int64_t i, auto at) HWY_ATTR {
    const auto e = Exp(d, hn::Sub(at.Load(logits + i), shift));
    sum = hn::Add(sum, at.ZeroRest(e));
    if (d_logits != nullptr) at.Store(e, d_logits + i);
  });
  const float total = Sum(sum);
  if (d_logits != nullptr) {
    const auto factor = hn::Set(d, scale / total);
    ForEachVector(vocabulary, [&](int64_t i, auto at) HWY_ATTR {
      at.Store(hn::Mul(at.Load(d_logits + i), factor), d_logits + i);
    });
    d_logits[target] -= scale;
  }
  return LogOf(total) + row_largest - target_logit;
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(CrossEntropyRow);

double CrossEntropyRow(const float* logits, int32_t target, float scale, float* d_logits,
                       int64_t vocabulary) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyRow)(logits, target, scale, d_logits, vocabulary);
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
