// Linear maps: one product each, and kernels for what the library did not fuse with it. Such a
// kernel reads a result that was already rounded, so in bfloat16 an epilogue of its own costs one
// rounding more.
#include "base/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/kernels/activations.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {

MatmulType KernelBackend::ProductType(DType type) const {
  if (type == DType::kBF16) return MatmulType::kBfloat16;
  return precision_ == Precision::kTensorFloat32 ? MatmulType::kTensorFloat32
                                                 : MatmulType::kFloat32;
}

void KernelBackend::LinearForward(const LinearForwardArgs& args) {
  constexpr char kWhat[] = "LinearForward";
  const int64_t rows = args.x.shape()[0], in = args.weight.shape()[1], out = args.weight.shape()[0];
  CHECK_EQ(args.x.shape()[1], in) << "linear";
  CHECK_EQ(args.y.elements(), rows * out) << "linear";
  const bool bias = args.bias.valid(), gelu = args.activation.valid();
  const bool residual = args.residual.valid();
  CHECK(!residual || !gelu) << "linear with GELU and residual";
  CHECK(!residual || args.residual.elements() == rows * out) << "linear, residual";
  const DType type =
      TypeOf(kWhat, {&args.x, &args.weight, &args.bias, &args.y, &args.activation, &args.residual});
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  const MatmulEpilogue done = Product({.kind = MatmulKind::kForward,
                                       .rows = rows,
                                       .in = in,
                                       .out = out,
                                       .type = ProductType(type),
                                       .epilogue = ForwardEpilogue(bias, gelu),
                                       .residual = residual},
                                      {.a = args.weight.raw(),
                                       .b = args.x.raw(),
                                       .bias = bias ? args.bias.raw() : nullptr,
                                       .d = args.y.raw(),
                                       .activation = gelu ? args.activation.raw() : nullptr,
                                       .residual = residual ? args.residual.raw() : nullptr},
                                      kWhat);
  WithType(type, [&]<typename T>(T) {
    T* const y = args.y.data<T>();
    if (bias && !HasBias(done)) Note(AddBias(stream, args.bias.data<T>(), y, rows, out), kWhat);
    if (gelu && !HasGelu(done)) Note(Gelu(stream, y, args.activation.data<T>(), rows * out), kWhat);
  });
}

void KernelBackend::LinearBackwardInput(const LinearBackwardInputArgs& args) {
  constexpr char kWhat[] = "LinearBackwardInput";
  const int64_t rows = args.dy.shape()[0], in = args.weight.shape()[1];
  const int64_t out = args.weight.shape()[0];
  CHECK_EQ(args.dy.shape()[1], out) << "linear backward";
  CHECK_EQ(args.dx.elements(), rows * in) << "linear backward";
  const DType type = TypeOf(kWhat, {&args.dy, &args.weight, &args.gelu_input, &args.dx});
  if (rows == 0) return;
  const bool gelu = args.gelu_input.valid();
  const cudaStream_t stream = Begin();
  const MatmulEpilogue done =
      Product({.kind = MatmulKind::kBackwardInput,
               .rows = rows,
               .in = in,
               .out = out,
               .type = ProductType(type),
               .epilogue = gelu ? MatmulEpilogue::kGeluGradient : MatmulEpilogue::kNone},
              {.a = args.weight.raw(),
               .b = args.dy.raw(),
               .d = args.dx.raw(),
               .gelu_input = gelu ? args.gelu_input.raw() : nullptr},
              kWhat);
  if (!gelu || done == MatmulEpilogue::kGeluGradient) return;
  WithType(type, [&]<typename T>(T) {
    T* const dx = args.dx.data<T>();
    Note(GeluGradient(stream, dx, args.gelu_input.data<T>(), dx, rows * in), kWhat);
  });
}

void KernelBackend::LinearBackwardWeight(const LinearBackwardWeightArgs& args) {
  constexpr char kWhat[] = "LinearBackwardWeight";
  const int64_t rows = args.dy.shape()[0], out = args.dy.shape()[1], in = args.x.shape()[1];
  CHECK_EQ(args.x.shape()[0], rows) << "linear backward";
  CHECK_EQ(args.d_weight.elements(), out * in) << "linear backward";
  CheckType(kWhat, DType::kF32, {&args.d_weight, &args.d_bias});
  const DType type = TypeOf(kWhat, {&args.dy, &args.x});
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  Product({.kind = MatmulKind::kBackwardWeight,
           .rows = rows,
           .in = in,
           .out = out,
           .type = ProductType(type)},
          {.a = args.x.raw(), .b = args.dy.raw(), .d = args.d_weight.raw()}, kWhat);
  if (!args.d_bias.valid()) return;
  auto* const scratch =
      static_cast<float*>(Scratch(PlanColumnSum(rows, out, 1, 1).scratch_bytes, kWhat));
  if (scratch == nullptr) return;
  WithType(type, [&]<typename T>(T) {
    Note(ColumnSum(stream, args.dy.data<T>(), args.d_bias.data<float>(), rows, out, scratch),
         kWhat);
  });
}

}  // namespace stagecoach::cuda
