#include "stage/backends/cpu/products/float32_products.h"

#include <algorithm>

#include "devices/host/linear_blocks.h"

namespace stagecoach::cpu {
namespace {

MatmulShape ShapeOf(const RowProduct& p, int64_t m) {
  return {.m = m,
          .k = p.k,
          .n = p.n,
          .a = {p.k, 1},
          .b = p.strides,
          .c_row = p.n,
          .packed = p.rows >= kRowsToPack,
          .bias = p.bias != nullptr};
}

// b in the product's order: kept, or made for this call. Null without memory.
const float* PackedOf(CpuBackend& backend, const RowProduct& p, const Matmul& product) {
  PackedWeights& kept = backend.packed_weights();
  const auto pack = [&](float* packed) { product.Pack(p.b, packed); };
  if (kept.KeepsProduct(p.parameter)) {
    const ProductPacking packing = {p.k, p.n, p.strides, product.packed_order()};
    return kept.Get(p.parameter, packing, product.packed_bytes(), pack);
  }
  float* const packed = backend.ReserveShared(product.packed_bytes());
  if (packed != nullptr) pack(packed);
  return packed;
}

// A lower last block reads the same packed matrix, or the matrix as it stands if it wants another
// order.
const Matmul& ProductOfRest(CpuBackend& backend, const RowProduct& p, const Matmul& product,
                            int64_t rest) {
  MatmulShape shape = ShapeOf(p, rest);
  const Matmul& same = backend.matmuls().Get(shape);
  if (!product.packed() || same.packed_order() == product.packed_order()) return same;
  shape.packed = false;
  return backend.matmuls().Get(shape);
}

}  // namespace

void RunRowProduct(CpuBackend& backend, const RowProduct& p, CpuBackend::BlockBody finish) {
  const SerialOpenMp serial;  // primitives are made for one thread
  const int64_t full = std::min(p.rows, kRowBlock), rest = p.rows % full;
  const Matmul& product = backend.matmuls().Get(ShapeOf(p, full));
  const Matmul& rest_product = rest == 0 ? product : ProductOfRest(backend, p, product, rest);
  const int64_t scratch = std::max(product.scratch_bytes(), rest_product.scratch_bytes());
  const int rooms = backend.ReserveRooms(scratch);
  if (rooms == 0) return;
  const float* const packed = product.packed() ? PackedOf(backend, p, product) : nullptr;
  if (product.packed() && packed == nullptr) return;
  backend.ForEachBlock(rooms, p.rows, kRowBlock, [&](int64_t first, int64_t count, int worker) {
    const Matmul& block = count == full ? product : rest_product;
    block.Execute(p.a + first * p.k, block.packed() ? packed : p.b, p.bias, p.c + first * p.n,
                  backend.WorkerScratch(worker));
    finish(first, count, worker);
  });
}

void AddWeightGradientFloat32(CpuBackend& backend, const Tensor& dy, const Tensor& x,
                              const Tensor& d_weight) {
  const int64_t rows = dy.shape()[0], out = dy.shape()[1], in = x.shape()[1];
  const SerialOpenMp serial;
  const auto shape = [&](int64_t m) {
    return MatmulShape{
        .m = m, .k = rows, .n = in, .a = {1, out}, .b = {in, 1}, .c_row = in, .accumulate = true};
  };
  const int64_t full = std::min(out, kWeightBlock), rest = out % full;
  const Matmul& product = backend.matmuls().Get(shape(full));
  const Matmul& rest_product = rest == 0 ? product : backend.matmuls().Get(shape(rest));
  const int64_t scratch = std::max(product.scratch_bytes(), rest_product.scratch_bytes());
  const int rooms = backend.ReserveRooms(scratch);
  if (rooms == 0) return;
  const float *dy_data = dy.data<float>(), *x_data = x.data<float>();
  float* sums = d_weight.data<float>();
  backend.ForEachBlock(rooms, out, kWeightBlock, [&](int64_t first, int64_t count, int worker) {
    (count == full ? product : rest_product)
        .Execute(dy_data + first, x_data, nullptr, sums + first * in,
                 backend.WorkerScratch(worker));
  });
}

}  // namespace stagecoach::cpu
