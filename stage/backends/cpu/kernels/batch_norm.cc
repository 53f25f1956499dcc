// Statistics in one pass: of chunks of rows that stay in a cache, put together in their order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/batch_norm.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>
#include <cmath>
#include <vector>

#include "operations/norms/batch_norm.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/vector-inl.h"
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

// totals = term(r, v, sum so far) of all rows, for kVectors vectors of columns; more sums at once
// than a chain of one.
template <int kVectors, typename At, typename Term>
HWY_INLINE void SumOverRows(int64_t rows, At at, float* totals, Term term) {
  constexpr int kSums = 4, kRows = kSums / kVectors;
  F32Vec sums[kSums];
  for (auto& sum : sums) sum = hn::Zero(F32());
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) {
    for (int i = 0; i < kSums; ++i) sums[i] = term(r + i / kVectors, i % kVectors, sums[i]);
  }
  for (; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[v] = term(r, v, sums[v]);
  }
  for (int v = 0; v < kVectors; ++v) {
    auto total = sums[v];
    for (int i = v + kVectors; i < kSums; i += kVectors) total = hn::Add(total, sums[i]);
    at.Store(total, totals + v * FloatLanes());
  }
}

template <int kVectors, typename At>
HWY_INLINE void MomentsOfColumns(const float* x, int64_t rows, int64_t channels, At at, float* mean,
                                 float* squares) {
  const int64_t lanes = FloatLanes();
  SumOverRows<kVectors>(rows, at, mean, [=](int64_t r, int v, F32Vec sum) HWY_ATTR {
    return hn::Add(sum, at.Load(x + r * channels + v * lanes));
  });
  const auto inverse = hn::Set(F32(), 1.0f / static_cast<float>(rows));
  for (int v = 0; v < kVectors; ++v) {
    at.Store(hn::Mul(at.Load(mean + v * lanes), inverse), mean + v * lanes);
  }
  SumOverRows<kVectors>(rows, at, squares, [=](int64_t r, int v, F32Vec sum) HWY_ATTR {
    const auto centred = hn::Sub(at.Load(x + r * channels + v * lanes), at.Load(mean + v * lanes));
    return hn::MulAdd(centred, centred, sum);
  });
}

// Of `rows` rows: the mean by channel, and the sum of the squares of what is above or below it.
void ChunkMoments(const float* x, int64_t rows, int64_t channels, float* mean, float* squares) {
  const int64_t wide = 4 * FloatLanes();
  int64_t i = 0;
  for (; i + wide <= channels; i += wide) {
    MomentsOfColumns<4>(x + i, rows, channels, FullAccess(), mean + i, squares + i);
  }
  ForEachVector(channels - i, [&](int64_t j, auto at) HWY_ATTR {
    MomentsOfColumns<1>(x + i + j, rows, channels, at, mean + i + j, squares + i + j);
  });
}

template <int kVectors, typename At>
HWY_INLINE void GradientsOfColumns(const float* dy, const float* x, int64_t rows, int64_t channels,
                                   At at, const float* mean, const float* rstd, float* products,
                                   float* sums) {
  const int64_t lanes = FloatLanes();
  SumOverRows<kVectors>(rows, at, products, [=](int64_t r, int v, F32Vec sum) HWY_ATTR {
    const int64_t from = r * channels + v * lanes;
    const auto centred = hn::Sub(at.Load(x + from), at.Load(mean + v * lanes));
    const auto xhat = hn::Mul(centred, at.Load(rstd + v * lanes));
    return hn::MulAdd(at.Load(dy + from), xhat, sum);
  });
  SumOverRows<kVectors>(rows, at, sums, [=](int64_t r, int v, F32Vec sum) HWY_ATTR {
    return hn::Add(sum, at.Load(dy + r * channels + v * lanes));
  });
}

// Of `rows` rows by channel: the sum of dy * xhat, and of dy.
void ChunkGradients(const float* dy, const float* x, int64_t rows, int64_t channels,
                    const float* mean, const float* rstd, float* products, float* sums) {
  const int64_t wide = 4 * FloatLanes();
  int64_t i = 0;
  for (; i + wide <= channels; i += wide) {
    GradientsOfColumns<4>(dy + i, x + i, rows, channels, FullAccess(), mean + i, rstd + i,
                          products + i, sums + i);
  }
  ForEachVector(channels - i, [&](int64_t j, auto at) HWY_ATTR {
    const int64_t k = i + j;
    GradientsOfColumns<1>(dy + k, x + k, rows, channels, at, mean + k, rstd + k, products + k,
                          sums + k);
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

HWY_EXPORT(ChunkMoments);
HWY_EXPORT(ChunkGradients);
HWY_EXPORT(BatchNormRows);
HWY_EXPORT(BatchNormGradientRows);

namespace {

// How a tensor's rows of channels are walked: with few channels, `fold` of them as one row, where
// that comes out even.
struct Rows {
  Rows(const Tensor& tensor, int64_t channels)
      : channels(channels), places(tensor.elements() / channels) {
    while (2 * fold * channels <= 64 && places % (2 * fold) == 0) fold *= 2;
    width = fold * channels;
    count = places / fold;
  }
  // A task's, of what goes element by element.
  int64_t block() const { return std::max(kSmallRowBlock, kElementBlock / width); }

  int64_t channels, places;
  int64_t fold = 1, width = 0, count = 0;
};

// Numbers by channel, for each of the folded rows.
class Repeated {
 public:
  Repeated(const Rows& rows, const float* values) : values_(values) {
    if (rows.fold == 1) return;
    for (int64_t i = 0; i < rows.fold; ++i) {
      room_.insert(room_.end(), values, values + rows.channels);
    }
    values_ = room_.data();
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  const float* get() const { return values_; }

 private:
  std::vector<float> room_;
  const float* values_;
};

// The rows in chunks that depend on the shape alone, and two numbers an element of a row for each.
class Chunks {
 public:
  // operands: that are read at once. Not ok() without memory.
  Chunks(CpuBackend& backend, const Tensor& tensor, const Rows& rows, int64_t operands)
      : backend_(backend),
        width_(rows.width),
        rows_(rows.count),
        most_(std::max<int64_t>(1, kChunk / rows.width)) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
    const int64_t widened = IsBfloat16(tensor) ? operands * most_ * width_ * kBytes : 0;
    rooms_ = backend.ReserveRooms(widened);
    if (rooms_ == 0) return;
    numbers_ = backend.ReserveShared(std::max<int64_t>(1, count()) * 2 * width_ * kBytes);
  }
  bool ok() const { return numbers_ != nullptr; }
  int64_t count() const { return (rows_ + most_ - 1) / most_; }
  int64_t rows_of(int64_t chunk) const { return std::min(most_, rows_ - chunk * most_); }
  float* first(int64_t chunk) const { return numbers_ + 2 * chunk * width_; }
  float* second(int64_t chunk) const { return first(chunk) + width_; }

  // body(chunk, its first element, its elements, room for operands of so many)
  template <typename Body>
  void ForEach(Body body) const {
    backend_.ForEachBlock(rooms_, rows_, most_, [&](int64_t first, int64_t some, int worker) {
      body(first / most_, first * width_, some * width_, backend_.WorkerScratch(worker));
    });
  }

 private:
  static constexpr int64_t kChunk = 32768;  // elements: they stay in the second cache

  CpuBackend& backend_;
  const int64_t width_, rows_, most_;
  int rooms_ = 0;
  float* numbers_ = nullptr;
};

// mean and variance, the biased one, of the chunks' moments (Chan et al., 1979, equation 2.1).
void PutTogether(const Chunks& chunks, const Rows& rows, float* mean, float* variance) {
  std::vector<double> means(static_cast<size_t>(rows.channels)), squares(means.size());
  double before = 0;
  for (int64_t part = 0; part < chunks.count() * rows.fold; ++part) {
    const int64_t chunk = part / rows.fold, from = part % rows.fold * rows.channels;
    const float *own_mean = chunks.first(chunk) + from, *own_squares = chunks.second(chunk) + from;
    const auto some = static_cast<double>(chunks.rows_of(chunk));
    const double share = some / (before + some);
    for (size_t c = 0; c < means.size(); ++c) {
      const double delta = double{own_mean[c]} - means[c];
      means[c] += delta * share;
      squares[c] += double{own_squares[c]} + delta * delta * (before * share);
    }
    before += some;
  }
  for (size_t c = 0; c < means.size(); ++c) {
    mean[c] = static_cast<float>(means[c]);
    variance[c] = static_cast<float>(squares[c] / std::max(1.0, before));
  }
}

// Of the chunks' first numbers, or of their second ones.
void AddUp(const Chunks& chunks, const Rows& rows, float* (Chunks::*numbers)(int64_t) const,
           float* result) {
  std::vector<double> sums(static_cast<size_t>(rows.channels));
  for (int64_t part = 0; part < chunks.count() * rows.fold; ++part) {
    const float* own = (chunks.*numbers)(part / rows.fold) + part % rows.fold * rows.channels;
    for (size_t c = 0; c < sums.size(); ++c) sums[c] += double{own[c]};
  }
  for (size_t c = 0; c < sums.size(); ++c) result[c] = static_cast<float>(sums[c]);
}

// Inputs x, weight, bias; output y.
void Normalize(CpuBackend& backend, const KernelArguments& a, const float* mean,
               const float* rstd) {
  const Rows rows(a.inputs[0], a.inputs[1].elements());
  const FloatInput x(a.inputs[0]);
  const FloatOutput y(a.outputs[0]);
  const Repeated means(rows, mean), rstds(rows, rstd), weight(rows, a.inputs[1].data<float>()),
      bias(rows, a.inputs[2].data<float>());
  backend.ForEachPiece(a.inputs[0], rows.block(), rows.width, 1,
                       [&](int64_t first, int64_t count, const Room& room) {
                         const int64_t start = first * rows.width, elements = count * rows.width;
                         HWY_DYNAMIC_DISPATCH(BatchNormRows)
                         (x.Read(start, elements, room[0]), means.get(), rstds.get(), weight.get(),
                          bias.get(), y.At(start, room[0]), count, rows.width);
                         y.Finish(start, elements, room[0]);
                       });
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto epsilon = static_cast<float>(AttributesOf<BatchNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[1].elements();
    float *mean = a.outputs[1].data<float>(), *rstd = a.outputs[2].data<float>();
    float* variance = a.outputs[3].data<float>();
    const Rows rows(a.inputs[0], channels);
    const Chunks chunks(backend, a.inputs[0], rows, 1);
    if (!chunks.ok()) return;
    const FloatInput x(a.inputs[0]);
    chunks.ForEach([&](int64_t chunk, int64_t start, int64_t elements, float* room) {
      HWY_DYNAMIC_DISPATCH(ChunkMoments)
      (x.Read(start, elements, room), elements / rows.width, rows.width, chunks.first(chunk),
       chunks.second(chunk));
    });
    PutTogether(chunks, rows, mean, variance);
    for (int64_t c = 0; c < channels; ++c) rstd[c] = 1.0f / std::sqrt(variance[c] + epsilon);
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
    const Rows rows(a.inputs[0], channels);
    const Repeated mean(rows, a.inputs[2].data<float>()), rstd(rows, a.inputs[3].data<float>());
    const Chunks chunks(backend, a.inputs[0], rows, 2);
    if (!chunks.ok()) return;
    const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
    chunks.ForEach([&](int64_t chunk, int64_t start, int64_t elements, float* room) {
      HWY_DYNAMIC_DISPATCH(ChunkGradients)
      (dy.Read(start, elements, room),
       x.Read(start, elements, room == nullptr ? room : room + elements), elements / rows.width,
       rows.width, mean.get(), rstd.get(), chunks.first(chunk), chunks.second(chunk));
    });
    AddUp(chunks, rows, &Chunks::first, a.outputs[0].data<float>());
    AddUp(chunks, rows, &Chunks::second, a.outputs[1].data<float>());
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const Rows rows(a.inputs[0], a.inputs[2].elements());
    const Repeated weight(rows, a.inputs[2].data<float>()), mean(rows, a.inputs[3].data<float>()),
        rstd(rows, a.inputs[4].data<float>()), d_weight(rows, a.inputs[5].data<float>()),
        d_bias(rows, a.inputs[6].data<float>());
    const float inverse = 1.0f / static_cast<float>(std::max<int64_t>(1, rows.places));
    const GradientRows by = {weight.get(),   mean.get(),   rstd.get(),
                             d_weight.get(), d_bias.get(), inverse};
    const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
    const FloatOutput dx(a.outputs[0]);
    backend.ForEachPiece(a.inputs[0], rows.block(), rows.width, 2,
                         [&](int64_t first, int64_t count, const Room& room) {
                           const int64_t start = first * rows.width, elements = count * rows.width;
                           HWY_DYNAMIC_DISPATCH(BatchNormGradientRows)
                           (by, dy.Read(start, elements, room[0]), x.Read(start, elements, room[1]),
                            dx.At(start, room[0]), count, rows.width);
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
