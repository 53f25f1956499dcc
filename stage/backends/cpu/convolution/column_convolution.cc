#include "stage/backends/cpu/convolution/column_convolution.h"

#include <algorithm>
#include <memory>
#include <type_traits>

#include "base/threads/progress.h"
#include "operations/images/convolution.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/convolution/convolution_columns.h"
#include "stage/backends/cpu/convolution/convolution_room.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/multiply_add.h"

namespace stagecoach::cpu {
namespace {

// The product of a whole block and of a lower last one.
struct BlockProduct {
  std::shared_ptr<Matmul> full, rest;

  template <typename Shape>  // MatmulShape of so many places
  BlockProduct(const ConvolutionWork& work, Shape shape) {
    const SerialOpenMp serial;  // primitives are made for one thread
    full = std::make_shared<Matmul>(shape(work.full));
    rest = work.rest == 0 ? full : std::make_shared<Matmul>(shape(work.rest));
  }
  int64_t scratch_floats() const {
    return (std::max(full->scratch_bytes(), rest->scratch_bytes()) + kFloatBytes - 1) / kFloatBytes;
  }
  const Matmul& Of(const ConvolutionWork& work, int64_t block) const {
    return work.Rows(block) == work.block_rows ? *full : *rest;
  }
};

// What a worker takes for a block: columns and a product's scratch where there is a product, and
// float32 of the places where the tensors are bfloat16.
struct BlockRoom {
  int64_t columns = 0, scratch = 0, widened = 0;

  static BlockRoom Of(const ConvolutionWork& work, const BlockProduct& product, bool widens) {
    BlockRoom room;
    if (!work.depthwise()) {
      room.columns = work.full * work.row;
      room.scratch = product.scratch_floats();
    }
    if (widens) room.widened = work.full * work.s.out;
    return room;
  }
  int64_t floats() const {
    return Pieces::Rounded(columns) + Pieces::Rounded(scratch) + Pieces::Rounded(widened);
  }
};

// weights[tap][channel] of a depthwise weight [channel][tap].
void TransposeTaps(const float* weight, int64_t channels, int64_t taps, float* target) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t t = 0; t < taps; ++t) target[t * channels + c] = weight[c * taps + t];
  }
}

// Weight and bias as floats, and a depthwise weight's other order; without memory no weight.
struct SharedWeights {
  const float *weight = nullptr, *bias = nullptr;
  float* by_tap = nullptr;

  static SharedWeights Of(CpuBackend& backend, const ConvolutionWork& work, const Tensor& weight,
                          const Tensor& bias) {
    SharedWeights shared;
    const int64_t elements = weight.elements(), outputs = work.s.out;
    const int64_t widened = IsBfloat16(weight) ? elements : 0;
    const int64_t ordered = work.depthwise() ? elements : 0;
    const int64_t widened_bias = bias.valid() && IsBfloat16(bias) ? outputs : 0;
    const int64_t floats =
        Pieces::Rounded(widened) + Pieces::Rounded(ordered) + Pieces::Rounded(widened_bias);
    float* const room = floats == 0 ? nullptr : backend.ReserveShared(floats * kFloatBytes);
    if (floats > 0 && room == nullptr) return shared;
    Pieces pieces(room);
    shared.weight = AsFloats(weight, pieces.Take(widened));
    shared.by_tap = pieces.Take(ordered);
    if (bias.valid()) shared.bias = AsFloats(bias, pieces.Take(widened_bias));
    if (work.depthwise()) TransposeTaps(shared.weight, outputs, work.taps, shared.by_tap);
    return shared;
  }
};

template <typename T>
void DepthwiseBlock(const ConvolutionWork& work, const T* image, const SharedWeights& weights,
                    int64_t block, float* y) {
  const WindowShape& w = work.s.window;
  const int64_t places = work.Rows(block) * w.places_width, channels = w.channels;
  for (int64_t p = 0; p < places; ++p) {
    if (weights.bias == nullptr) {
      std::fill_n(y + p * channels, channels, 0.0f);
    } else {
      CopyChannels(weights.bias, y + p * channels, channels);
    }
  }
  ForEachTapInside(w, work.FirstRow(block), work.Rows(block),
                   [&](int64_t place, int64_t tap, int64_t pixel) {
                     MultiplyAdd(image + pixel * channels, weights.by_tap + tap * channels,
                                 y + place * channels, channels);
                   });
}

template <typename T>
void ForwardBlocks(CpuBackend& backend, int rooms, const ConvolutionWork& work,
                   const BlockProduct& product, const BlockRoom& room, const SharedWeights& weights,
                   int64_t samples, const T* x, T* y) {
  constexpr bool kNarrow = std::is_same_v<T, Bfloat16>;
  backend.ForEachBlock(rooms, samples * work.blocks, 1, [&](int64_t task, int64_t, int worker) {
    const int64_t sample = task / work.blocks, block = task % work.blocks;
    const T* const image = x + sample * work.image;
    const int64_t start =
        (sample * work.places + work.FirstRow(block) * work.s.window.places_width);
    const int64_t places = work.Rows(block) * work.s.window.places_width;
    Pieces pieces(backend.WorkerScratch(worker));
    float* const columns = pieces.Take(room.columns);
    float* const scratch = pieces.Take(room.scratch);
    T* const target = y + start * work.s.out;
    float* sums = nullptr;
    if constexpr (kNarrow) {
      sums = pieces.Take(room.widened);
    } else {
      sums = target;
    }
    if (work.depthwise()) {
      DepthwiseBlock(work, image, weights, block, sums);
    } else {
      for (int64_t g = 0; g < work.s.groups; ++g) {
        TakeColumns(work, image, g, block, columns);
        product.Of(work, block)
            .Execute(columns, weights.weight + g * work.out * work.row,
                     weights.bias == nullptr ? nullptr : weights.bias + g * work.out,
                     sums + g * work.out, scratch);
      }
    }
    if constexpr (kNarrow) Narrow(sums, target, places * work.s.out);
  });
}

}  // namespace

Kernel ForwardByColumns(CpuBackend& backend, const ConvolutionShape& shape, bool bias) {
  const ConvolutionWork work(shape);
  const BlockProduct product(work, [&](int64_t places) {
    return MatmulShape{.m = places,
                       .k = work.row,
                       .n = work.out,
                       .a = {work.row, 1},
                       .b = {1, work.row},
                       .c_row = work.s.out,
                       .bias = bias};
  });
  return Kernel(
      [&backend, work, product, bias](const KernelContext& context, const KernelArguments& a) {
        const BlockRoom room = BlockRoom::Of(work, product, IsBfloat16(a.inputs[0]));
        const int rooms = backend.ReserveRooms(room.floats() * kFloatBytes);
        if (rooms == 0) return;
        const SharedWeights weights =
            SharedWeights::Of(backend, work, a.inputs[1], bias ? a.inputs[2] : Tensor());
        if (weights.weight == nullptr) return;
        WithTypeOf(a.inputs[0], [&]<typename T>(T) {
          ForwardBlocks(backend, rooms, work, product, room, weights, context.run.sequences,
                        a.inputs[0].data<T>(), a.outputs[0].data<T>());
        });
      });
}

namespace {

// One sample's image, float32, from zeros.
template <typename T>
void AddSampleGradient(const ConvolutionWork& work, const BlockProduct& product,
                       const BlockRoom& room, const SharedWeights& weights, const T* dy,
                       Pieces pieces, float* image) {
  const WindowShape& w = work.s.window;
  float* const columns = pieces.Take(room.columns);
  float* const scratch = pieces.Take(room.scratch);
  float* const widened = pieces.Take(room.widened);
  for (int64_t block = 0; block < work.blocks; ++block) {
    TickProgress();  // a sample may take long
    const T* const places = dy + work.FirstRow(block) * w.places_width * work.s.out;
    if (work.depthwise()) {
      ForEachTapInside(w, work.FirstRow(block), work.Rows(block),
                       [&](int64_t place, int64_t tap, int64_t pixel) {
                         MultiplyAdd(places + place * w.channels, weights.by_tap + tap * w.channels,
                                     image + pixel * w.channels, w.channels);
                       });
      continue;
    }
    const float* gradient = nullptr;
    if constexpr (std::is_same_v<T, Bfloat16>) {
      Widen(places, widened, work.Rows(block) * w.places_width * work.s.out);
      gradient = widened;
    } else {
      gradient = places;
    }
    for (int64_t g = 0; g < work.s.groups; ++g) {
      product.Of(work, block)
          .Execute(gradient + g * work.out, weights.weight + g * work.out * work.row, nullptr,
                   columns, scratch);
      AddColumns(work, columns, g, block, image);
    }
  }
}

}  // namespace

Kernel InputGradientByColumns(CpuBackend& backend, const ConvolutionShape& shape) {
  const ConvolutionWork work(shape);
  const BlockProduct product(work, [&](int64_t places) {
    return MatmulShape{.m = places,
                       .k = work.out,
                       .n = work.row,
                       .a = {work.s.out, 1},
                       .b = {work.row, 1},
                       .c_row = work.row};
  });
  return Kernel([&backend, work, product](const KernelContext& context, const KernelArguments& a) {
    const bool narrow = IsBfloat16(a.inputs[0]);
    const int64_t widened_image = narrow ? work.image : 0;
    const BlockRoom room = BlockRoom::Of(work, product, narrow && !work.depthwise());
    const int rooms =
        backend.ReserveRooms((Pieces::Rounded(widened_image) + room.floats()) * kFloatBytes);
    if (rooms == 0) return;
    const SharedWeights weights = SharedWeights::Of(backend, work, a.inputs[1], Tensor());
    if (weights.weight == nullptr) return;
    const FloatOutput dx(a.outputs[0]);
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      backend.ForEachBlock(
          rooms, context.run.sequences, 1, [&](int64_t sample, int64_t, int worker) {
            Pieces pieces(backend.WorkerScratch(worker));
            float* const widened = pieces.Take(widened_image);
            float* const image = dx.At(sample * work.image, widened);
            std::fill_n(image, work.image, 0.0f);
            AddSampleGradient(work, product, room, weights,
                              a.inputs[0].data<T>() + sample * work.places * work.s.out, pieces,
                              image);
            dx.Finish(sample * work.image, work.image, widened);
          });
    });
  });
}

namespace {

// sums [out, row], of a depthwise weight [taps, out], adds one sample's.
template <typename T>
void AddSampleProducts(const ConvolutionWork& work, const BlockProduct& product,
                       const BlockRoom& room, const T* dy, const T* x, Pieces pieces, float* sums) {
  const WindowShape& w = work.s.window;
  float* const columns = pieces.Take(room.columns);
  float* const scratch = pieces.Take(room.scratch);
  float* const widened = pieces.Take(room.widened);
  for (int64_t block = 0; block < work.blocks; ++block) {
    TickProgress();  // a sample may take long
    const T* const places = dy + work.FirstRow(block) * w.places_width * work.s.out;
    if (work.depthwise()) {
      ForEachTapInside(w, work.FirstRow(block), work.Rows(block),
                       [&](int64_t place, int64_t tap, int64_t pixel) {
                         MultiplyAdd(x + pixel * w.channels, places + place * w.channels,
                                     sums + tap * w.channels, w.channels);
                       });
      continue;
    }
    const float* gradient = nullptr;
    if constexpr (std::is_same_v<T, Bfloat16>) {
      Widen(places, widened, work.Rows(block) * w.places_width * work.s.out);
      gradient = widened;
    } else {
      gradient = places;
    }
    for (int64_t g = 0; g < work.s.groups; ++g) {
      TakeColumns(work, x, g, block, columns);
      product.Of(work, block)
          .Execute(gradient + g * work.out, columns, nullptr, sums + g * work.out * work.row,
                   scratch);
    }
  }
}

// d_weight adds the shares in order.
void AddShares(CpuBackend& backend, const ConvolutionWork& work, const float* shares,
               int64_t elements, int64_t count, float* d_weight) {
  backend.ForEachBlock(elements, kElementBlock, [&](int64_t first, int64_t some, int) {
    for (int64_t i = first; i < first + some; ++i) {
      const int64_t at = work.depthwise() ? i % work.taps * work.s.out + i / work.taps : i;
      float sum = 0.0f;
      for (int64_t share = 0; share < count; ++share) sum += shares[share * elements + at];
      d_weight[i] += sum;
    }
  });
}

void SumBias(const ColumnBlock& block) {
  ColumnSums(block.operands[0], block.total, block.rows, block.stride, block.columns);
}

}  // namespace

Kernel WeightGradientByColumns(CpuBackend& backend, const ConvolutionShape& shape, bool bias) {
  const ConvolutionWork work(shape);
  const BlockProduct product(work, [&](int64_t places) {
    return MatmulShape{.m = work.out,
                       .k = places,
                       .n = work.row,
                       .a = {1, work.s.out},
                       .b = {work.row, 1},
                       .c_row = work.row,
                       .accumulate = true};
  });
  return Kernel(
      [&backend, work, product, bias](const KernelContext& context, const KernelArguments& a) {
        const int64_t samples = context.run.sequences, elements = a.adds[0].elements();
        if (samples == 0) return;
        const int64_t each = SamplesOfShare(samples, work.places);
        const int64_t count = (samples + each - 1) / each;
        const BlockRoom room =
            BlockRoom::Of(work, product, IsBfloat16(a.inputs[0]) && !work.depthwise());
        const int rooms = backend.ReserveRooms(room.floats() * kFloatBytes);
        if (rooms == 0) return;
        float* const shares = backend.ReserveShared(count * elements * kFloatBytes);
        if (shares == nullptr) return;
        WithTypeOf(a.inputs[0], [&]<typename T>(T) {
          const T *dy = a.inputs[0].data<T>(), *x = a.inputs[1].data<T>();
          backend.ForEachBlock(rooms, samples, each, [&](int64_t first, int64_t some, int worker) {
            float* const sums = shares + first / each * elements;
            std::fill_n(sums, elements, 0.0f);
            for (int64_t n = first; n < first + some; ++n) {
              AddSampleProducts(work, product, room, dy + n * work.places * work.s.out,
                                x + n * work.image, Pieces(backend.WorkerScratch(worker)), sums);
            }
          });
        });
        AddShares(backend, work, shares, elements, count, a.adds[0].data<float>());
        if (!bias) return;
        const Tensor operands[] = {a.inputs[0]};
        SumColumns(backend, operands, work.s.out, work.s.out, a.adds[1].data<float>(), SumBias);
      });
}

}  // namespace stagecoach::cpu
