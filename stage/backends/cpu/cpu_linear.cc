// Linear layers: products by oneDNN in fixed blocks, what follows on the block while it is hot.
#include <algorithm>

#include "base/check.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernels.h"
#include "stage/backends/cpu/linear_blocks.h"

namespace stagecoach::cpu {
// c[rows, n] = a[rows, k] b[k, n] + bias, b with `strides`.
struct CpuBackend::RowProduct {
  int64_t rows, k, n;
  const float* a;
  const float* b;
  Strides strides;
  const float* bias;  // may be null
  float* c;

  MatmulShape Shape(int64_t m) const {
    return {.m = m,
            .k = k,
            .n = n,
            .a = {k, 1},
            .b = strides,
            .c_row = n,
            .packed = rows >= kPackRows,
            .bias = bias != nullptr};
  }
};

void CpuBackend::RunRowProduct(const RowProduct& p, BlockBody finish) {
  const SerialOpenMp serial;  // primitives are made for one thread
  // A lower last block may want another packed layout: it reads the matrix as it stands.
  const int64_t full = std::min(p.rows, kRowBlock), rest = p.rows % full;
  const Matmul& product = matmuls_.Get(p.Shape(full));
  MatmulShape rest_shape = p.Shape(rest);
  rest_shape.packed = false;
  const Matmul& rest_product = rest == 0 ? product : matmuls_.Get(rest_shape);
  if (!ReserveWorkers(std::max(product.scratch_bytes(), rest_product.scratch_bytes()))) return;
  const float* b = p.b;
  if (p.Shape(full).packed) {
    float* packed = ReserveShared(product.packed_bytes());
    if (packed == nullptr) return;
    product.Pack(p.b, packed);
    b = packed;
  }
  ForEachBlock(p.rows, kRowBlock, [&](int64_t first, int64_t count, int worker) {
    const bool whole = count == full;
    (whole ? product : rest_product)
        .Execute(p.a + first * p.k, whole ? b : p.b, p.bias, p.c + first * p.n,
                 WorkerScratch(worker));
    finish(first, count, worker);
  });
}

void CpuBackend::LinearForward(const LinearForwardArgs& args) {
  const int64_t rows = args.x.shape()[0], in = args.weight.shape()[1], out = args.weight.shape()[0];
  CHECK_EQ(args.x.shape()[1], in) << "linear";
  CHECK_EQ(args.y.elements(), rows * out) << "linear";
  CHECK(!args.residual.valid() || !args.activation.valid()) << "linear with GELU and residual";
  CHECK(!args.residual.valid() || args.residual.elements() == rows * out) << "linear, residual";
  if (rows == 0) return;
  if (IsBfloat16(args.x)) return LinearForwardBfloat16(args);
  float* y = args.y.data<float>();
  float* activation = args.activation.valid() ? args.activation.data<float>() : nullptr;
  const float* residual = args.residual.valid() ? args.residual.data<float>() : nullptr;
  RunRowProduct({.rows = rows,
                 .k = in,
                 .n = out,
                 .a = args.x.data<float>(),
                 .b = args.weight.data<float>(),
                 .strides = {1, in},
                 .bias = args.bias.valid() ? args.bias.data<float>() : nullptr,
                 .c = y},
                [&](int64_t first, int64_t count, int) {
                  const int64_t start = first * out, elements = count * out;
                  if (residual != nullptr) AddTo(residual + start, y + start, elements);
                  if (activation != nullptr) Gelu(y + start, activation + start, elements);
                });
}

void CpuBackend::LinearBackwardInput(const LinearBackwardInputArgs& args) {
  const int64_t rows = args.dy.shape()[0], in = args.weight.shape()[1],
                out = args.weight.shape()[0];
  CHECK_EQ(args.dy.shape()[1], out) << "linear backward";
  CHECK_EQ(args.dx.elements(), rows * in) << "linear backward";
  if (rows == 0) return;
  if (IsBfloat16(args.dy)) return LinearBackwardInputBfloat16(args);
  float* dx = args.dx.data<float>();
  const float* gelu_input = args.gelu_input.valid() ? args.gelu_input.data<float>() : nullptr;
  RunRowProduct({.rows = rows,
                 .k = out,
                 .n = in,
                 .a = args.dy.data<float>(),
                 .b = args.weight.data<float>(),
                 .strides = {in, 1},
                 .bias = nullptr,
                 .c = dx},
                [&](int64_t first, int64_t count, int) {
                  if (gelu_input == nullptr) return;
                  float* block = dx + first * in;
                  cpu::GeluBackward(block, gelu_input + first * in, block, count * in);
                });
}

void CpuBackend::LinearBackwardWeight(const LinearBackwardWeightArgs& args) {
  const int64_t rows = args.dy.shape()[0], out = args.dy.shape()[1], in = args.x.shape()[1];
  CHECK_EQ(args.x.shape()[0], rows) << "linear backward";
  CHECK_EQ(args.d_weight.elements(), out * in) << "linear backward";
  if (rows == 0) return;
  if (args.d_bias.valid()) AddColumnSums(args.dy, args.d_bias);
  if (IsBfloat16(args.dy)) return LinearBackwardWeightBfloat16(args);
  const SerialOpenMp serial;
  const auto shape = [&](int64_t m) {
    return MatmulShape{
        .m = m, .k = rows, .n = in, .a = {1, out}, .b = {in, 1}, .c_row = in, .accumulate = true};
  };
  const int64_t full = std::min(out, kWeightBlock), rest = out % full;
  const Matmul& product = matmuls_.Get(shape(full));
  const Matmul& rest_product = rest == 0 ? product : matmuls_.Get(shape(rest));
  if (!ReserveWorkers(std::max(product.scratch_bytes(), rest_product.scratch_bytes()))) return;
  const float *dy = args.dy.data<float>(), *x = args.x.data<float>();
  float* d_weight = args.d_weight.data<float>();
  ForEachBlock(out, kWeightBlock, [&](int64_t first, int64_t count, int worker) {
    (count == full ? product : rest_product)
        .Execute(dy + first, x, nullptr, d_weight + first * in, WorkerScratch(worker));
  });
}

}  // namespace stagecoach::cpu
