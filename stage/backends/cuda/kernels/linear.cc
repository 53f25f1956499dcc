// Linear maps: one product each, and kernels for what the library did not fuse with it. Such a
// kernel reads a result that was already rounded, so in bfloat16 an epilogue of its own costs one
// rounding more.
#include "stage/backends/cuda/kernels/linear.h"

#include "base/errors/check.h"
#include "operations/linear.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels/pointwise/activations.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

// The operands of a forward by name; those that its attributes leave out are empty.
struct ForwardOperands {
  Tensor x, weight, bias, residual, y, activation;

  ForwardOperands(const LinearAttributes& attributes, const KernelArguments& a)
      : x(a.inputs[0]), weight(a.inputs[1]), y(a.outputs[0]) {
    size_t next = 2;
    if (attributes.bias) bias = a.inputs[next++];
    if (attributes.residual) residual = a.inputs[next];
    if (attributes.gelu) activation = a.outputs[1];
  }
  const void* Raw(const Tensor& tensor) const { return tensor.valid() ? tensor.raw() : nullptr; }
};

// 0 where rows lie one after the other.
int64_t StrideOf(const Tensor& tensor) { return tensor.padded() ? tensor.row_stride() : 0; }

void Forward(KernelBackend& backend, const LinearAttributes& attributes, const ForwardOperands& o) {
  constexpr char kWhat[] = "linear";
  const int64_t rows = o.x.shape()[0], in = o.weight.shape()[1], out = o.weight.shape()[0];
  CHECK_EQ(o.x.shape()[1], in) << kWhat;
  CHECK_EQ(o.y.elements(), rows * out) << kWhat;
  CHECK(!attributes.residual || o.residual.elements() == rows * out) << "linear, residual";
  const DType type = TypeOf(kWhat, {&o.x, &o.weight, &o.bias, &o.y, &o.activation, &o.residual});
  if (rows == 0) return;
  const cudaStream_t stream = backend.Begin();
  const MatmulEpilogue done =
      backend.Product({.kind = MatmulKind::kForward,
                       .rows = rows,
                       .in = in,
                       .out = out,
                       .type = backend.ProductType(type),
                       .epilogue = ForwardEpilogue(attributes.bias, attributes.gelu),
                       .residual = attributes.residual,
                       .out_stride = StrideOf(o.y)},
                      {.a = o.weight.raw(),
                       .b = o.x.raw(),
                       .bias = o.Raw(o.bias),
                       .d = o.y.rows_raw(),
                       .activation = attributes.gelu ? o.activation.raw() : nullptr,
                       .residual = o.Raw(o.residual)},
                      kWhat);
  if (!attributes.bias && !attributes.gelu) return;
  WithType(type, [&]<typename T>(T) {
    T* const y = o.y.data<T>();
    if (attributes.bias && !HasBias(done)) {
      backend.Note(AddBias(stream, o.bias.data<T>(), y, rows, out), kWhat);
    }
    if (attributes.gelu && !HasGelu(done)) {
      backend.Note(Gelu(stream, y, o.activation.data<T>(), rows * out), kWhat);
    }
  });
}

absl::StatusOr<Kernel> PrepareForward(KernelBackend& backend, const Call& call, const CallTypes&,
                                      DType) {
  const auto attributes = AttributesOf<LinearAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext&, const KernelArguments& a) {
    Forward(backend, attributes, ForwardOperands(attributes, a));
  });
}

absl::StatusOr<Kernel> InputGradient(KernelBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  const bool gelu = AttributesOf<LinearInputGradientAttributes>(call).gelu;
  return Kernel([&backend, gelu](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "linear_input_gradient";
    const Tensor &dy = a.inputs[0], &weight = a.inputs[1], &dx = a.outputs[0];
    const Tensor& gelu_input = a.inputs[gelu ? 2 : 0];
    const int64_t rows = dy.shape()[0], in = weight.shape()[1], out = weight.shape()[0];
    CHECK_EQ(dy.shape()[1], out) << kWhat;
    CHECK_EQ(dx.elements(), rows * in) << kWhat;
    const DType type = TypeOf(kWhat, {&dy, &weight, &gelu_input, &dx});
    if (rows == 0) return;
    const cudaStream_t stream = backend.Begin();
    const MatmulEpilogue done =
        backend.Product({.kind = MatmulKind::kBackwardInput,
                         .rows = rows,
                         .in = in,
                         .out = out,
                         .type = backend.ProductType(type),
                         .epilogue = gelu ? MatmulEpilogue::kGeluGradient : MatmulEpilogue::kNone,
                         .out_stride = StrideOf(dy)},
                        {.a = weight.raw(),
                         .b = dy.rows_raw(),
                         .d = dx.raw(),
                         .gelu_input = gelu ? gelu_input.raw() : nullptr},
                        kWhat);
    if (!gelu || done == MatmulEpilogue::kGeluGradient) return;
    WithType(type, [&]<typename T>(T) {
      T* const result = dx.data<T>();
      backend.Note(GeluGradient(stream, result, gelu_input.data<T>(), result, rows * in), kWhat);
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(KernelBackend& backend, const Call& call, const CallTypes&,
                                      DType) {
  const bool bias = AttributesOf<LinearWeightGradientAttributes>(call).bias;
  return Kernel([&backend, bias](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "linear_weight_gradient";
    const Tensor &dy = a.inputs[0], &x = a.inputs[1];
    const int64_t rows = dy.shape()[0], out = dy.shape()[1], in = x.shape()[1];
    CHECK_EQ(x.shape()[0], rows) << kWhat;
    CHECK_EQ(a.adds[0].elements(), out * in) << kWhat;
    CheckType(kWhat, DType::kF32, {&a.adds[0], &a.adds[bias ? 1 : 0]});
    const DType type = TypeOf(kWhat, {&dy, &x});
    if (rows == 0) return;
    const cudaStream_t stream = backend.Begin();
    backend.Product({.kind = MatmulKind::kBackwardWeight,
                     .rows = rows,
                     .in = in,
                     .out = out,
                     .type = backend.ProductType(type),
                     .out_stride = StrideOf(dy)},
                    {.a = x.raw(), .b = dy.rows_raw(), .d = a.adds[0].raw()}, kWhat);
    if (!bias) return;
    const size_t bytes = PlanColumnSum(rows, out, 1, 1).scratch_bytes;
    auto* const scratch = static_cast<float*>(backend.Scratch(bytes, kWhat));
    if (scratch == nullptr) return;
    WithType(type, [&]<typename T>(T) {
      backend.Note(ColumnSum(stream, dy.data<T>(), a.adds[1].data<float>(), rows, out, scratch),
                   kWhat);
    });
  });
}

}  // namespace

KernelList LinearKernels() {
  return {{"linear", PrepareForward},
          {"linear_input_gradient", InputGradient},
          {"linear_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cuda
