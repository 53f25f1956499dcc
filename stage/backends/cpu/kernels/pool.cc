// A task a row of places, or of a gradient's image: plain loops over channels.
#include "operations/pool.h"

#include <vector>

#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/pool_loops.h"
#include "stage/backends/pool_shape.h"

namespace stagecoach::cpu {
namespace {

int64_t ImageElements(const WindowShape& s) { return s.height * s.width * s.channels; }
int64_t RowElements(const WindowShape& s) { return s.places_width * s.channels; }

template <typename F>
void WithTypeOf(const Tensor& tensor, F f) {
  if (IsBfloat16(tensor)) return f(Bfloat16{});
  f(float{});
}

// body(row, sums) for each of the rows.
template <typename Body>
void ForEachRow(CpuBackend& backend, int64_t rows, Body body) {
  backend.ForEachBlock(rows, 1, [&](int64_t row, int64_t, int) {
    thread_local std::vector<float> sums;
    body(row, sums);
  });
}

absl::StatusOr<Kernel> MaxPool(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const WindowShape s =
      PoolShape(AttributesOf<MaxPoolAttributes>(call).steps, types.inputs[0], types.outputs[0]);
  return Kernel([&backend, s](const KernelContext& context, const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      ForEachRow(backend, context.run.sequences * s.places_height, [&](int64_t row, auto&) {
        MaxPoolRow(s, row % s.places_height,
                   a.inputs[0].data<T>() + row / s.places_height * ImageElements(s),
                   a.outputs[0].data<T>() + row * RowElements(s),
                   a.outputs[1].data<int32_t>() + row * RowElements(s));
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
      ForEachRow(backend, context.run.sequences * s.height, [&](int64_t row, auto& sums) {
        const int64_t sample = row / s.height * s.places_height * RowElements(s);
        MaxPoolGradientRow(s, row % s.height, a.inputs[0].data<T>() + sample,
                           a.inputs[1].data<int32_t>() + sample,
                           a.outputs[0].data<T>() + row * s.width * s.channels, sums);
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
      ForEachRow(backend, context.run.sequences * s.places_height, [&](int64_t row, auto& sums) {
        AveragePoolRow(s, padding, row % s.places_height,
                       a.inputs[0].data<T>() + row / s.places_height * ImageElements(s),
                       a.outputs[0].data<T>() + row * RowElements(s), sums);
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
      ForEachRow(backend, context.run.sequences * s.height, [&](int64_t row, auto& sums) {
        const int64_t sample = row / s.height * s.places_height * RowElements(s);
        AveragePoolGradientRow(s, padding, row % s.height, a.inputs[0].data<T>() + sample,
                               a.outputs[0].data<T>() + row * s.width * s.channels, sums);
      });
    });
  });
}

absl::StatusOr<Kernel> GlobalPool(CpuBackend& backend, const Call&, const CallTypes& types, DType) {
  const Shape& image = types.inputs[0].shape;
  return Kernel([&backend, places = image[0] * image[1], channels = image[2]](
                    const KernelContext& context, const KernelArguments& a) {
    WithTypeOf(a.inputs[0], [&]<typename T>(T) {
      ForEachRow(backend, context.run.sequences, [&](int64_t n, auto& sums) {
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
      ForEachRow(backend, context.run.sequences, [&](int64_t n, auto&) {
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
