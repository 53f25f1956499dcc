// A task some rows of places, or of a gradient's image; vectors of channels, each through all taps
// of its window.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/pool.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>
#include <vector>

#include "operations/images/pool.h"
#include "stage/backends/call_shapes.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/vector-inl.h"
#include "stage/backends/pool_loops.h"

#ifndef STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_POOL_ONCE_
#define STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_POOL_ONCE_
namespace stagecoach::cpu {

// What one tap of a window gives: the channels of a pixel, or of a place that covers the pixel.
struct Tap {
  const void* values = nullptr;  // T, float or Bfloat16
  int32_t tap = 0;
  const int32_t* choice = nullptr;  // of the place of a maximum
  float divisor = 1;                // of the place of an average
  template <typename T>
  const T* As() const {
    return static_cast<const T*>(values);
  }
};
using Taps = std::vector<Tap>;

}  // namespace stagecoach::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

using I32 = hn::RebindToSigned<F32>;

// An index as bits of a float, which are only moved.
HWY_INLINE F32Vec Index(int32_t tap) { return hn::BitCast(F32(), hn::Set(I32(), tap)); }

// The first of the largest; a NaN comes before all else, and the first one stays.
template <typename T>
HWY_INLINE void LargestOf(const Taps& taps, int64_t channels, T* y, int32_t* choice) {
  ForEachVector(channels, [&](int64_t i, auto at) HWY_ATTR {
    auto best = at.Load(taps[0].As<T>() + i);
    auto chosen = Index(taps[0].tap);
    for (size_t t = 1; t < taps.size(); ++t) {
      const auto x = at.Load(taps[t].As<T>() + i);
      const auto better = hn::And(hn::Eq(best, best), hn::Not(hn::Le(x, best)));
      best = hn::IfThenElse(better, x, best);
      chosen = hn::IfThenElse(better, Index(taps[t].tap), chosen);
    }
    at.Store(best, y + i);
    at.Store(chosen, reinterpret_cast<float*>(choice) + i);
  });
}

// Adding 0 for a place that chose another changes no bit: the sum begins at +0, and nothing makes
// that -0.
template <typename T>
HWY_INLINE void SumOfChosen(const Taps& taps, int64_t channels, T* dx) {
  ForEachVector(channels, [&](int64_t i, auto at) HWY_ATTR {
    auto sum = hn::Zero(F32());
    for (const Tap& tap : taps) {
      const auto choice = at.Load(reinterpret_cast<const float*>(tap.choice) + i);
      const auto same = hn::Eq(hn::BitCast(I32(), choice), hn::Set(I32(), tap.tap));
      const auto kept = hn::RebindMask(F32(), same);
      sum = hn::Add(sum, hn::IfThenElseZero(kept, at.Load(tap.As<T>() + i)));
    }
    at.Store(sum, dx + i);
  });
}

template <typename T>
HWY_INLINE void MeanOf(const Taps& taps, int64_t channels, float divisor, T* y) {
  ForEachVector(channels, [&](int64_t i, auto at) HWY_ATTR {
    auto sum = hn::Zero(F32());
    for (const Tap& tap : taps) sum = hn::Add(sum, at.Load(tap.As<T>() + i));
    at.Store(hn::Div(sum, hn::Set(F32(), divisor)), y + i);
  });
}

template <typename T>
HWY_INLINE void SumOfQuotients(const Taps& taps, int64_t channels, T* dx) {
  ForEachVector(channels, [&](int64_t i, auto at) HWY_ATTR {
    auto sum = hn::Zero(F32());
    for (const Tap& tap : taps) {
      const auto quotient = hn::Div(at.Load(tap.As<T>() + i), hn::Set(F32(), tap.divisor));
      sum = hn::Add(sum, quotient);
    }
    at.Store(sum, dx + i);
  });
}

void LargestFloats(const Taps& taps, int64_t channels, float* y, int32_t* choice) {
  LargestOf(taps, channels, y, choice);
}
void LargestNarrow(const Taps& taps, int64_t channels, Bfloat16* y, int32_t* choice) {
  LargestOf(taps, channels, y, choice);
}
void ChosenFloats(const Taps& taps, int64_t channels, float* dx) {
  SumOfChosen(taps, channels, dx);
}
void ChosenNarrow(const Taps& taps, int64_t channels, Bfloat16* dx) {
  SumOfChosen(taps, channels, dx);
}
void MeanFloats(const Taps& taps, int64_t channels, float divisor, float* y) {
  MeanOf(taps, channels, divisor, y);
}
void MeanNarrow(const Taps& taps, int64_t channels, float divisor, Bfloat16* y) {
  MeanOf(taps, channels, divisor, y);
}
void QuotientFloats(const Taps& taps, int64_t channels, float* dx) {
  SumOfQuotients(taps, channels, dx);
}
void QuotientNarrow(const Taps& taps, int64_t channels, Bfloat16* dx) {
  SumOfQuotients(taps, channels, dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(LargestFloats);
HWY_EXPORT(LargestNarrow);
HWY_EXPORT(ChosenFloats);
HWY_EXPORT(ChosenNarrow);
HWY_EXPORT(MeanFloats);
HWY_EXPORT(MeanNarrow);
HWY_EXPORT(QuotientFloats);
HWY_EXPORT(QuotientNarrow);

namespace {

void Largest(const Taps& taps, int64_t channels, float* y, int32_t* choice) {
  HWY_DYNAMIC_DISPATCH(LargestFloats)(taps, channels, y, choice);
}
void Largest(const Taps& taps, int64_t channels, Bfloat16* y, int32_t* choice) {
  HWY_DYNAMIC_DISPATCH(LargestNarrow)(taps, channels, y, choice);
}
void Chosen(const Taps& taps, int64_t channels, float* dx) {
  HWY_DYNAMIC_DISPATCH(ChosenFloats)(taps, channels, dx);
}
void Chosen(const Taps& taps, int64_t channels, Bfloat16* dx) {
  HWY_DYNAMIC_DISPATCH(ChosenNarrow)(taps, channels, dx);
}
void Mean(const Taps& taps, int64_t channels, float divisor, float* y) {
  HWY_DYNAMIC_DISPATCH(MeanFloats)(taps, channels, divisor, y);
}
void Mean(const Taps& taps, int64_t channels, float divisor, Bfloat16* y) {
  HWY_DYNAMIC_DISPATCH(MeanNarrow)(taps, channels, divisor, y);
}
void Quotients(const Taps& taps, int64_t channels, float* dx) {
  HWY_DYNAMIC_DISPATCH(QuotientFloats)(taps, channels, dx);
}
void Quotients(const Taps& taps, int64_t channels, Bfloat16* dx) {
  HWY_DYNAMIC_DISPATCH(QuotientNarrow)(taps, channels, dx);
}

int64_t ImageElements(const WindowShape& s) { return s.height * s.width * s.channels; }
int64_t RowElements(const WindowShape& s) { return s.places_width * s.channels; }

template <typename F>
void WithTypeOf(const Tensor& tensor, F f) {
  if (IsBfloat16(tensor)) return f(Bfloat16{});
  f(float{});
}

// body(row, taps) for each of the rows of so many elements; as many make a task as are worth one.
template <typename Body>
void ForEachRow(CpuBackend& backend, int64_t rows, int64_t elements, Body body) {
  constexpr int64_t kTaskElements = 1 << 14;
  const int64_t block = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, elements));
  backend.ForEachBlock(rows, block, [&](int64_t first, int64_t count, int) {
    thread_local Taps taps;
    for (int64_t row = first; row < first + count; ++row) body(row, taps);
  });
}

// The pixels that the window at place (i, j) of a sample's image covers.
template <typename T>
void TakeWindow(const WindowShape& s, int64_t i, int64_t j, const T* image, Taps& taps) {
  taps.clear();
  const TapRange rows = RowTaps(s, i), columns = ColumnTaps(s, j);
  for (int64_t u = rows.first; u < rows.last; ++u) {
    const T* const line =
        image + (i * s.stride_height - s.padding_height + u) * s.width * s.channels;
    for (int64_t v = columns.first; v < columns.last; ++v) {
      taps.push_back({.values = line + (j * s.stride_width - s.padding_width + v) * s.channels,
                      .tap = static_cast<int32_t>(u * s.size_width + v)});
    }
  }
}

// The places whose window covers pixel (h, w): body(i, j, tap, where its channels begin).
template <typename Body>
void ForEachPlaceOver(const WindowShape& s, int64_t h, int64_t w, Body body) {
  const TapRange rows =
      PlacesOver(h, s.stride_height, s.padding_height, s.size_height, s.places_height);
  const TapRange columns =
      PlacesOver(w, s.stride_width, s.padding_width, s.size_width, s.places_width);
  for (int64_t i = rows.first; i < rows.last; ++i) {
    const int64_t u = h + s.padding_height - i * s.stride_height;
    for (int64_t j = columns.first; j < columns.last; ++j) {
      const int64_t v = w + s.padding_width - j * s.stride_width;
      body(i, j, static_cast<int32_t>(u * s.size_width + v), (i * s.places_width + j) * s.channels);
    }
  }
}

absl::StatusOr<Kernel> MaxPool(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const WindowShape s =
      PoolShape(AttributesOf<MaxPoolAttributes>(call).steps, types.inputs[0], types.outputs[0]);
  return Kernel([&backend, s](const KernelContext& context, const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      const int64_t rows = context.run.sequences * s.places_height;
      ForEachRow(backend, rows, RowElements(s), [&](int64_t row, Taps& taps) {
        const T* const image = a.inputs[0].data<T>() + row / s.places_height * ImageElements(s);
        for (int64_t j = 0; j < s.places_width; ++j) {
          const int64_t at = row * RowElements(s) + j * s.channels;
          TakeWindow(s, row % s.places_height, j, image, taps);
          Largest(taps, s.channels, a.outputs[0].data<T>() + at, a.outputs[1].data<int32_t>() + at);
        }
      });
    });
  });
}

absl::StatusOr<Kernel> MaxPoolGradient(CpuBackend& backend, const Call& call,
                                       const CallTypes& types, DType) {
  const WindowShape s = PoolShape(AttributesOf<MaxPoolGradientAttributes>(call).steps,
                                  types.outputs[0], types.inputs[0]);
  return Kernel([&backend, s](const KernelContext& context, const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      const int64_t elements = s.width * s.channels, rows = context.run.sequences * s.height;
      ForEachRow(backend, rows, elements, [&](int64_t row, Taps& taps) {
        const int64_t sample = row / s.height * s.places_height * RowElements(s);
        const T* const dy = a.inputs[0].data<T>() + sample;
        const int32_t* const choice = a.inputs[1].data<int32_t>() + sample;
        for (int64_t w = 0; w < s.width; ++w) {
          taps.clear();
          ForEachPlaceOver(s, row % s.height, w, [&](int64_t, int64_t, int32_t tap, int64_t place) {
            taps.push_back({.values = dy + place, .tap = tap, .choice = choice + place});
          });
          Chosen(taps, s.channels, a.outputs[0].data<T>() + row * elements + w * s.channels);
        }
      });
    });
  });
}

absl::StatusOr<Kernel> AveragePool(CpuBackend& backend, const Call& call, const CallTypes& types,
                                   DType) {
  const auto attributes = AttributesOf<AveragePoolAttributes>(call);
  const WindowShape s = PoolShape(attributes.steps, types.inputs[0], types.outputs[0]);
  return Kernel([&backend, s, padding = attributes.count_padding](const KernelContext& context,
                                                                  const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      const int64_t rows = context.run.sequences * s.places_height;
      ForEachRow(backend, rows, RowElements(s), [&](int64_t row, Taps& taps) {
        const int64_t i = row % s.places_height;
        const T* const image = a.inputs[0].data<T>() + row / s.places_height * ImageElements(s);
        for (int64_t j = 0; j < s.places_width; ++j) {
          TakeWindow(s, i, j, image, taps);
          Mean(taps, s.channels, static_cast<float>(PoolDivisor(s, padding, i, j)),
               a.outputs[0].data<T>() + row * RowElements(s) + j * s.channels);
        }
      });
    });
  });
}

absl::StatusOr<Kernel> AveragePoolGradient(CpuBackend& backend, const Call& call,
                                           const CallTypes& types, DType) {
  const auto attributes = AttributesOf<AveragePoolGradientAttributes>(call);
  const WindowShape s = PoolShape(attributes.steps, types.outputs[0], types.inputs[0]);
  return Kernel([&backend, s, padding = attributes.count_padding](const KernelContext& context,
                                                                  const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      const int64_t elements = s.width * s.channels, rows = context.run.sequences * s.height;
      ForEachRow(backend, rows, elements, [&](int64_t row, Taps& taps) {
        const T* const dy =
            a.inputs[0].data<T>() + row / s.height * s.places_height * RowElements(s);
        for (int64_t w = 0; w < s.width; ++w) {
          taps.clear();
          ForEachPlaceOver(
              s, row % s.height, w, [&](int64_t i, int64_t j, int32_t tap, int64_t place) {
                taps.push_back({.values = dy + place,
                                .tap = tap,
                                .divisor = static_cast<float>(PoolDivisor(s, padding, i, j))});
              });
          Quotients(taps, s.channels, a.outputs[0].data<T>() + row * elements + w * s.channels);
        }
      });
    });
  });
}

absl::StatusOr<Kernel> GlobalPool(CpuBackend& backend, const Call&, const CallTypes& types, DType) {
  const Shape& image = types.inputs[0].shape;
  return Kernel([&backend, places = image[0] * image[1], channels = image[2]](
                    const KernelContext& context, const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      backend.ForEachBlock(context.run.sequences, 1, [&](int64_t n, int64_t, int) {
        thread_local std::vector<float> sums;
        MeanOfPlaces(places, channels, a.inputs[0].data<T>() + n * places * channels,
                     a.outputs[0].data<T>() + n * channels, sums);
      });
    });
  });
}

absl::StatusOr<Kernel> GlobalPoolGradient(CpuBackend& backend, const Call&, const CallTypes& types,
                                          DType) {
  const Shape& image = types.outputs[0].shape;
  return Kernel([&backend, places = image[0] * image[1], channels = image[2]](
                    const KernelContext& context, const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      backend.ForEachBlock(context.run.sequences, 1, [&](int64_t n, int64_t, int) {
        const T* dy = a.inputs[0].data<T>() + n * channels;
        T* dx = a.outputs[0].data<T>() + n * places * channels;
        for (int64_t i = 0; i < places * channels; ++i) {
          dx[i] = T(static_cast<float>(dy[i % channels]) / static_cast<float>(places));
        }
      });
    });
  });
}

}  // namespace

KernelList PoolKernels() {
  return {{"max_pool", MaxPool},
          {"max_pool_gradient", MaxPoolGradient},
          {"average_pool", AveragePool},
          {"average_pool_gradient", AveragePoolGradient},
          {"global_average_pool", GlobalPool},
          {"global_average_pool_gradient", GlobalPoolGradient}};
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
