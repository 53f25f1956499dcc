// operations/attention/cached_attention.h
#include "operations/attention/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/threads/progress.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

struct Arrays {
  const float* qkv;
  const int32_t *places, *positions, *history;
  float *keys, *values, *out;
};

void WriteRow(const CachedHeads& heads, const Arrays& a, int64_t row) {
  if (!heads.InPool(a.places[row])) return;
  const float* const key = a.qkv + row * heads.packed_width() + heads.width();
  const int64_t start = a.places[row] * heads.key_width();
  std::copy_n(key, heads.key_width(), a.keys + start);
  std::copy_n(key + heads.key_width(), heads.key_width(), a.values + start);
}

void AttendHead(const CachedHeads& heads, const Arrays& a, int64_t row, int64_t head) {
  const int64_t width = heads.head_width, seen = heads.Seen(a.positions[row]);
  const float* const query = a.qkv + row * heads.packed_width() + head * width;
  const auto at = [&](int64_t t) {  // of keys and of values
    return heads.PoolRow(a.history[row * heads.context + t]) * heads.key_width() +
           head / heads.group() * width;
  };
  std::vector<double> scores(static_cast<size_t>(seen)), sums(static_cast<size_t>(width));
  for (int64_t t = 0; t < seen; ++t) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += double{query[i]} * a.keys[at(t) + i];
    scores[static_cast<size_t>(t)] = sum / std::sqrt(static_cast<double>(width));
  }
  const double largest = seen == 0 ? 0.0 : *std::ranges::max_element(scores);
  double total = 0;
  for (int64_t t = 0; t < seen; ++t) {
    const double p = std::exp(scores[static_cast<size_t>(t)] - largest);
    total += p;
    for (int64_t i = 0; i < width; ++i) sums[static_cast<size_t>(i)] += p * a.values[at(t) + i];
  }
  float* const out = a.out + row * heads.width() + head * width;
  for (int64_t i = 0; i < width; ++i) {
    out[i] = seen == 0 ? 0.0f : static_cast<float>(sums[static_cast<size_t>(i)] / total);
  }
}

absl::StatusOr<Kernel> Prepare(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const CachedHeads heads = CachedHeadsOf(AttributesOf<CachedAttentionAttributes>(call), types);
  return Kernel([heads](const KernelContext&, const KernelArguments& a) {
    const Arrays arrays = {a.inputs[0].data<float>(),   a.inputs[1].data<int32_t>(),
                           a.inputs[2].data<int32_t>(), a.inputs[3].data<int32_t>(),
                           a.adds[0].data<float>(),     a.adds[1].data<float>(),
                           a.outputs[0].data<float>()};
    const int64_t rows = a.inputs[1].elements();
    for (int64_t row = 0; row < rows; ++row) WriteRow(heads, arrays, row);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t head = 0; head < heads.heads; ++head) AttendHead(heads, arrays, row, head);
      TickProgress();
    }
  });
}

}  // namespace

KernelList CachedAttentionKernels() { return {{"cached_attention", Prepare}}; }

}  // namespace stagecoach::reference
