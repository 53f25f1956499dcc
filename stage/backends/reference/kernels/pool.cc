#include "operations/images/pool.h"

#include <vector>

#include "stage/backends/call_shapes.h"
#include "stage/backends/pool_loops.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

int64_t ImageElements(const WindowShape& s) { return s.height * s.width * s.channels; }
int64_t RowElements(const WindowShape& s) { return s.places_width * s.channels; }

absl::StatusOr<Kernel> MaxPool(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const WindowShape s =
      PoolShape(AttributesOf<MaxPoolAttributes>(call).steps, types.inputs[0], types.outputs[0]);
  return Kernel([s](const KernelContext& context, const KernelArguments& a) {
    for (int64_t row = 0; row < context.run.sequences * s.places_height; ++row) {
      MaxPoolRow(s, row % s.places_height,
                 a.inputs[0].data<float>() + row / s.places_height * ImageElements(s),
                 a.outputs[0].data<float>() + row * RowElements(s),
                 a.outputs[1].data<int32_t>() + row * RowElements(s));
    }
  });
}

absl::StatusOr<Kernel> MaxPoolGradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                       DType) {
  const WindowShape s = PoolShape(AttributesOf<MaxPoolGradientAttributes>(call).steps,
                                  types.outputs[0], types.inputs[0]);
  return Kernel([s](const KernelContext& context, const KernelArguments& a) {
    std::vector<double> sums;
    for (int64_t row = 0; row < context.run.sequences * s.height; ++row) {
      const int64_t sample = row / s.height * s.places_height * RowElements(s);
      MaxPoolGradientRow(s, row % s.height, a.inputs[0].data<float>() + sample,
                         a.inputs[1].data<int32_t>() + sample,
                         a.outputs[0].data<float>() + row * s.width * s.channels, sums);
    }
  });
}

absl::StatusOr<Kernel> AveragePool(ReferenceBackend&, const Call& call, const CallTypes& types,
                                   DType) {
  const auto attributes = AttributesOf<AveragePoolAttributes>(call);
  const WindowShape s = PoolShape(attributes.steps, types.inputs[0], types.outputs[0]);
  return Kernel([s, padding = attributes.count_padding](const KernelContext& context,
                                                        const KernelArguments& a) {
    std::vector<double> sums;
    for (int64_t row = 0; row < context.run.sequences * s.places_height; ++row) {
      AveragePoolRow(s, padding, row % s.places_height,
                     a.inputs[0].data<float>() + row / s.places_height * ImageElements(s),
                     a.outputs[0].data<float>() + row * RowElements(s), sums);
    }
  });
}

absl::StatusOr<Kernel> AveragePoolGradient(ReferenceBackend&, const Call& call,
                                           const CallTypes& types, DType) {
  const auto attributes = AttributesOf<AveragePoolGradientAttributes>(call);
  const WindowShape s = PoolShape(attributes.steps, types.outputs[0], types.inputs[0]);
  return Kernel([s, padding = attributes.count_padding](const KernelContext& context,
                                                        const KernelArguments& a) {
    std::vector<double> sums;
    for (int64_t row = 0; row < context.run.sequences * s.height; ++row) {
      const int64_t sample = row / s.height * s.places_height * RowElements(s);
      AveragePoolGradientRow(s, padding, row % s.height, a.inputs[0].data<float>() + sample,
                             a.outputs[0].data<float>() + row * s.width * s.channels, sums);
    }
  });
}

absl::StatusOr<Kernel> GlobalPool(ReferenceBackend&, const Call&, const CallTypes& types, DType) {
  const Shape& image = types.inputs[0].shape;
  return Kernel([places = image[0] * image[1], channels = image[2]](const KernelContext& context,
                                                                    const KernelArguments& a) {
    std::vector<double> sums;
    for (int64_t n = 0; n < context.run.sequences; ++n) {
      MeanOfPlaces(places, channels, a.inputs[0].data<float>() + n * places * channels,
                   a.outputs[0].data<float>() + n * channels, sums);
    }
  });
}

absl::StatusOr<Kernel> GlobalPoolGradient(ReferenceBackend&, const Call&, const CallTypes& types,
                                          DType) {
  const Shape& image = types.outputs[0].shape;
  return Kernel([places = image[0] * image[1], channels = image[2]](const KernelContext&,
                                                                    const KernelArguments& a) {
    const float* dy = a.inputs[0].data<float>();
    float* dx = a.outputs[0].data<float>();
    for (int64_t i = 0; i < a.outputs[0].elements(); ++i) {
      const int64_t sample = i / (places * channels);
      dx[i] =
          static_cast<float>(dy[sample * channels + i % channels] / static_cast<double>(places));
    }
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

}  // namespace stagecoach::reference
