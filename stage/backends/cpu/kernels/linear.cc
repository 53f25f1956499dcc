// Linear maps (operations/linear.h): a product by oneDNN in fixed blocks or panels, and what its
// attributes ask for on each of them while it is hot.
#include "operations/linear.h"

#include "base/errors/check.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/products/bfloat16_products.h"
#include "stage/backends/cpu/products/float32_products.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

// The operands of a forward by name; null are those that its attributes leave out.
template <typename T>
struct ForwardOperands {
  const T *x, *weight, *bias = nullptr, *residual = nullptr;
  T *y, *activation = nullptr;

  ForwardOperands(const LinearAttributes& attributes, const KernelArguments& a)
      : x(a.inputs[0].data<T>()), weight(a.inputs[1].data<T>()), y(a.outputs[0].data<T>()) {
    size_t next = 2;
    if (attributes.bias) bias = a.inputs[next++].data<T>();
    if (attributes.residual) residual = a.inputs[next].data<T>();
    if (attributes.gelu) activation = a.outputs[1].data<T>();
  }
};

struct ProductSize {
  int64_t rows, in, out;
};

void RunForward(CpuBackend& backend, const ProductSize& size, const Tensor& weight,
                const ForwardOperands<float>& o) {
  RunRowProduct(backend,
                {.rows = size.rows,
                 .k = size.in,
                 .n = size.out,
                 .a = o.x,
                 .b = o.weight,
                 .strides = {1, size.in},
                 .bias = o.bias,
                 .c = o.y,
                 .parameter = weight},
                [&](int64_t first, int64_t count, int) {
                  const int64_t start = first * size.out, elements = count * size.out;
                  if (o.residual != nullptr) AddTo(o.residual + start, o.y + start, elements);
                  if (o.activation != nullptr) Gelu(o.y + start, o.activation + start, elements);
                });
}

void RunForward(CpuBackend& backend, const ProductSize& size, const Tensor&,
                const ForwardOperands<Bfloat16>& o) {
  RunPanelProduct(backend,
                  {.rows = size.rows,
                   .k = size.in,
                   .n = size.out,
                   .a = o.x,
                   .b = o.weight,
                   .strides = {1, size.in},
                   .bias = o.bias},
                  [&](const Panel& panel) {
                    if (o.residual != nullptr) {
                      return panel.RoundSum(panel.sums, o.residual, o.y, size.out);
                    }
                    panel.Round(panel.sums, o.y, size.out);
                    if (o.activation == nullptr) return;
                    Gelu(panel.sums, panel.sums, panel.rows * panel.columns);
                    panel.Round(panel.sums, o.activation, size.out);
                  });
}

// gelu_input may be null.
void RunInputGradient(CpuBackend& backend, const ProductSize& size, const float* dy,
                      const Tensor& weight, const float* gelu_input, float* dx) {
  RunRowProduct(backend,
                {.rows = size.rows,
                 .k = size.out,
                 .n = size.in,
                 .a = dy,
                 .b = weight.data<float>(),
                 .strides = {size.in, 1},
                 .bias = nullptr,
                 .c = dx,
                 .parameter = weight},
                [&](int64_t first, int64_t count, int) {
                  if (gelu_input == nullptr) return;
                  float* block = dx + first * size.in;
                  GeluBackward(block, gelu_input + first * size.in, block, count * size.in);
                });
}

void RunInputGradient(CpuBackend& backend, const ProductSize& size, const Bfloat16* dy,
                      const Tensor& weight, const Bfloat16* gelu_input, Bfloat16* dx) {
  RunPanelProduct(backend,
                  {.rows = size.rows,
                   .k = size.out,
                   .n = size.in,
                   .a = dy,
                   .b = weight.data<Bfloat16>(),
                   .strides = {size.in, 1},
                   .bias = nullptr},
                  [&](const Panel& panel) {
                    if (gelu_input != nullptr) {
                      WidenRows(gelu_input + panel.row * size.in + panel.column, size.in,
                                panel.room, panel.rows, panel.columns);
                      GeluBackward(panel.sums, panel.room, panel.sums, panel.rows * panel.columns);
                    }
                    panel.Round(panel.sums, dx, size.in);
                  });
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  const auto attributes = AttributesOf<LinearAttributes>(call);
  return Kernel([&backend, attributes](const KernelContext&, const KernelArguments& a) {
    const Tensor &x = a.inputs[0], &weight = a.inputs[1];
    const ProductSize size = {x.shape()[0], weight.shape()[1], weight.shape()[0]};
    CHECK_EQ(x.shape()[1], size.in) << "linear";
    CHECK_EQ(a.outputs[0].elements(), size.rows * size.out) << "linear";
    if (attributes.residual) {
      CHECK_EQ(a.inputs[attributes.bias ? 3 : 2].elements(), size.rows * size.out)
          << "linear, residual";
    }
    if (size.rows == 0) return;
    if (IsBfloat16(x))
      return RunForward(backend, size, weight, ForwardOperands<Bfloat16>(attributes, a));
    RunForward(backend, size, weight, ForwardOperands<float>(attributes, a));
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call& call, const CallTypes&,
                                     DType) {
  const bool gelu = AttributesOf<LinearInputGradientAttributes>(call).gelu;
  return Kernel([&backend, gelu](const KernelContext&, const KernelArguments& a) {
    const Tensor &dy = a.inputs[0], &weight = a.inputs[1], &dx = a.outputs[0];
    const ProductSize size = {dy.shape()[0], weight.shape()[1], weight.shape()[0]};
    CHECK_EQ(dy.shape()[1], size.out) << "linear backward";
    CHECK_EQ(dx.elements(), size.rows * size.in) << "linear backward";
    if (size.rows == 0) return;
    const auto run = [&]<typename T>(T) {
      RunInputGradient(backend, size, dy.data<T>(), weight, gelu ? a.inputs[2].data<T>() : nullptr,
                       dx.data<T>());
    };
    IsBfloat16(dy) ? run(Bfloat16()) : run(float{});
  });
}

absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call& call, const CallTypes&,
                                      DType) {
  const bool bias = AttributesOf<LinearWeightGradientAttributes>(call).bias;
  return Kernel([&backend, bias](const KernelContext&, const KernelArguments& a) {
    const Tensor &dy = a.inputs[0], &x = a.inputs[1], &d_weight = a.adds[0];
    CHECK_EQ(x.shape()[0], dy.shape()[0]) << "linear backward";
    CHECK_EQ(d_weight.elements(), dy.shape()[1] * x.shape()[1]) << "linear backward";
    if (dy.shape()[0] == 0) return;
    if (bias) AddColumnSums(backend, dy, a.adds[1]);
    if (IsBfloat16(dy)) return AddWeightGradientBfloat16(backend, dy, x, d_weight);
    AddWeightGradientFloat32(backend, dy, x, d_weight);
  });
}

}  // namespace

KernelList LinearKernels() {
  return {{"linear", Forward},
          {"linear_input_gradient", InputGradient},
          {"linear_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cpu
