#include "stage/backends/cuda/kernels/convolution.h"

#include "stage/backends/convolution_shape.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

ConvolutionShape With(ConvolutionShape shape, const KernelContext& context) {
  shape.window.samples = context.run.sequences;
  return shape;
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<ConvolutionAttributes>(call);
  return Kernel([&backend, s = ForwardShape(attributes.steps, types), bias = attributes.bias](
                    const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "convolution";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(Convolution<T>(backend.Begin(), With(s, context), a.inputs[0].data<T>(),
                                  a.inputs[1].data<T>(), bias ? a.inputs[2].data<T>() : nullptr,
                                  a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> InputGradient(KernelBackend& backend, const Call& call,
                                     const CallTypes& types, DType) {
  const auto attributes = AttributesOf<ConvolutionInputGradientAttributes>(call);
  return Kernel([&backend, s = InputGradientShape(attributes.steps, types), what = call.operation](
                    const KernelContext& context, const KernelArguments& a) {
    const DType type = TypeOf(what.c_str(), {&a.inputs[0], &a.inputs[1], &a.outputs[0]});
    WithType(type, [&]<typename T>(T) {
      backend.Note(
          ConvolutionInputGradient(backend.Begin(), With(s, context), a.inputs[0].data<T>(),
                                   a.inputs[1].data<T>(), a.outputs[0].data<T>()),
          what.c_str());
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call& call,
                                      const CallTypes& types, DType) {
  const auto attributes = AttributesOf<ConvolutionWeightGradientAttributes>(call);
  return Kernel([&backend, one = WeightGradientShape(attributes.steps, types),
                 bias = attributes.bias](const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "convolution_weight_gradient";
    const ConvolutionShape s = With(one, context);
    const cudaStream_t stream = backend.Begin();
    const int64_t places = s.window.samples * s.window.places_height * s.window.places_width;
    float* scratch = nullptr;
    if (bias) {
      const size_t bytes = PlanColumnSum(places, s.out, 1, 1).scratch_bytes;
      scratch = static_cast<float*>(backend.Scratch(bytes, kWhat));
      if (scratch == nullptr) return;
    }
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.inputs[1]}), [&]<typename T>(T) {
      const T* const dy = a.inputs[0].data<T>();
      backend.Note(
          ConvolutionWeightGradient(stream, s, dy, a.inputs[1].data<T>(), a.adds[0].data<float>()),
          kWhat);
      if (!bias) return;
      backend.Note(ColumnSum(stream, dy, a.adds[1].data<float>(), places, s.out, scratch), kWhat);
    });
  });
}

}  // namespace

KernelList ConvolutionKernels() {
  return {{"convolution", Forward},
          {"convolution_input_gradient", InputGradient},
          {"convolution_weight_gradient", WeightGradient},
          {"transposed_convolution", InputGradient}};
}

}  // namespace stagecoach::cuda
