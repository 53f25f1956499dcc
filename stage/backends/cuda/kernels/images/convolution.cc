#include "stage/backends/cuda/kernels/images/convolution.h"

#include "stage/backends/call_shapes.h"
#include "stage/backends/cuda/cudnn/convolution/convolution_operands.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels/pointwise/add.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

ConvolutionShape With(ConvolutionShape shape, const KernelContext& context) {
  shape.window.samples = context.run.sequences;
  return shape;
}

AroundConvolution Around(KernelBackend& backend, const char* what) {
  return {.widen =
              [&backend, what](const Tensor& narrow, int64_t first, float* wide, int64_t n) {
                backend.Note(Convert(backend.Begin(), narrow.data<Bf16>() + first, wide, n), what);
              },
          .add =
              [&backend, what](const float* sums, const Tensor& gradient) {
                float* const d = gradient.data<float>();
                backend.Note(Add<float>(backend.Begin(), sums, d, d, gradient.elements()), what);
              }};
}

// Whether own kernels are to compute it: neither did a library, nor is anything noted against it.
bool IsLeftToOwnKernels(KernelBackend& backend, const ConvolutionArgs& args, const char* what) {
  const absl::StatusOr<bool> queued = backend.ConvolveByLibrary(args, Around(backend, what));
  if (!queued.ok()) backend.NoteStatus(queued.status(), what);
  return queued.ok() && !*queued;
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<ConvolutionAttributes>(call);
  return Kernel([&backend, s = ForwardShape(attributes.steps, types), bias = attributes.bias](
                    const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "convolution";
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.inputs[1], &a.outputs[0]});
    const ConvolutionArgs args = {.pass = ConvolutionPass::kForward,
                                  .shape = With(s, context),
                                  .precision = backend.PrecisionOf(type),
                                  .image = a.inputs[0],
                                  .weight = a.inputs[1],
                                  .places = a.outputs[0],
                                  .bias = bias ? a.inputs[2] : Tensor()};
    if (!IsLeftToOwnKernels(backend, args, kWhat)) return;
    WithType(type, [&]<typename T>(T) {
      backend.Note(
          Convolution<T>(backend.Begin(), args.shape, args.image.data<T>(), args.weight.data<T>(),
                         DataOrNull<T>(args.bias), args.places.data<T>()),
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
    const ConvolutionArgs args = {.pass = ConvolutionPass::kInputGradient,
                                  .shape = With(s, context),
                                  .precision = backend.PrecisionOf(type),
                                  .image = a.outputs[0],
                                  .weight = a.inputs[1],
                                  .places = a.inputs[0]};
    if (!IsLeftToOwnKernels(backend, args, what.c_str())) return;
    WithType(type, [&]<typename T>(T) {
      backend.Note(ConvolutionInputGradient(backend.Begin(), args.shape, args.places.data<T>(),
                                            args.weight.data<T>(), args.image.data<T>()),
                   what.c_str());
    });
  });
}

// The column sums of dy, whoever computed the weight's gradient.
void AddBiasGradient(KernelBackend& backend, const ConvolutionShape& s, const Tensor& dy,
                     const Tensor& d_bias, const char* what) {
  const int64_t places = s.window.samples * s.window.places_height * s.window.places_width;
  const cudaStream_t stream = backend.Begin();
  const size_t bytes = PlanColumnSum(places, s.out, 1, 1).scratch_bytes;
  auto* const scratch = static_cast<float*>(backend.Scratch(bytes, what));
  if (scratch == nullptr) return;
  WithType(dy.dtype(), [&]<typename T>(T) {
    backend.Note(ColumnSum(stream, dy.data<T>(), d_bias.data<float>(), places, s.out, scratch),
                 what);
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call& call,
                                      const CallTypes& types, DType) {
  const auto attributes = AttributesOf<ConvolutionWeightGradientAttributes>(call);
  return Kernel([&backend, one = WeightGradientShape(attributes.steps, types),
                 bias = attributes.bias](const KernelContext& context, const KernelArguments& a) {
    constexpr char kWhat[] = "convolution_weight_gradient";
    const DType type = TypeOf(kWhat, {&a.inputs[0], &a.inputs[1]});
    const ConvolutionArgs args = {.pass = ConvolutionPass::kWeightGradient,
                                  .shape = With(one, context),
                                  .precision = backend.PrecisionOf(type),
                                  .image = a.inputs[1],
                                  .weight = a.adds[0],
                                  .places = a.inputs[0]};
    if (IsLeftToOwnKernels(backend, args, kWhat)) {
      WithType(type, [&]<typename T>(T) {
        backend.Note(ConvolutionWeightGradient(backend.Begin(), args.shape, args.places.data<T>(),
                                               args.image.data<T>(), args.weight.data<float>()),
                     kWhat);
      });
    }
    if (bias) AddBiasGradient(backend, args.shape, args.places, a.adds[1], kWhat);
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
