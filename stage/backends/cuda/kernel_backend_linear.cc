#include "base/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {

void KernelBackend::LinearForward(const LinearForwardArgs& args) {
  const int64_t rows = args.x.shape()[0], in = args.weight.shape()[1], out = args.weight.shape()[0];
  CHECK_EQ(args.x.shape()[1], in) << "linear";
  CHECK_EQ(args.y.elements(), rows * out) << "linear";
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  Product(
      {.kind = MatmulKind::kForward, .rows = rows, .in = in, .out = out, .bias = args.bias.valid()},
      args.weight.data<float>(), args.x.data<float>(), DataOrNull<float>(args.bias),
      args.y.data<float>(), "LinearForward");
  if (!args.activation.valid()) return;
  Note(Gelu(stream, args.y.data<float>(), args.activation.data<float>(), rows * out),
       "LinearForward");
}

void KernelBackend::LinearBackwardInput(const LinearBackwardInputArgs& args) {
  const int64_t rows = args.dy.shape()[0], in = args.weight.shape()[1];
  const int64_t out = args.weight.shape()[0];
  CHECK_EQ(args.dy.shape()[1], out) << "linear backward";
  CHECK_EQ(args.dx.elements(), rows * in) << "linear backward";
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  float* const dx = args.dx.data<float>();
  Product({.kind = MatmulKind::kBackwardInput, .rows = rows, .in = in, .out = out},
          args.weight.data<float>(), args.dy.data<float>(), nullptr, dx, "LinearBackwardInput");
  if (!args.gelu_input.valid()) return;
  Note(cuda::GeluBackward(stream, dx, args.gelu_input.data<float>(), dx, rows * in),
       "LinearBackwardInput");
}

void KernelBackend::LinearBackwardWeight(const LinearBackwardWeightArgs& args) {
  const int64_t rows = args.dy.shape()[0], out = args.dy.shape()[1], in = args.x.shape()[1];
  CHECK_EQ(args.x.shape()[0], rows) << "linear backward";
  CHECK_EQ(args.d_weight.elements(), out * in) << "linear backward";
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  Product({.kind = MatmulKind::kBackwardWeight, .rows = rows, .in = in, .out = out},
          args.x.data<float>(), args.dy.data<float>(), nullptr, args.d_weight.data<float>(),
          "LinearBackwardWeight");
  if (!args.d_bias.valid()) return;
  const size_t bytes = PlanColumnSum(rows, out, 1, 4).scratch_bytes;
  auto* const scratch = static_cast<float*>(Scratch(bytes, "LinearBackwardWeight"));
  if (scratch == nullptr) return;
  Note(ColumnSum(stream, args.dy.data<float>(), args.d_bias.data<float>(), rows, out, scratch),
       "LinearBackwardWeight");
}

}  // namespace stagecoach::cuda
