#include "stage/backends/cpu/products/bfloat16_products.h"

#include <algorithm>

#include "devices/host/linear_blocks.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kWidenLines = 32;

int64_t RoundedUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
int64_t FloatBytes(int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); }

// Pieces of a workspace slot, all starting at whole cache lines.
int64_t Padded(int64_t bytes) { return RoundedUp(bytes, 64); }
class Carver {
 public:
  explicit Carver(float* base) : next_(base) {}
  bool valid() const { return next_ != nullptr; }
  float* Take(int64_t bytes) {
    float* piece = next_;
    next_ += Padded(bytes) / static_cast<int64_t>(sizeof(float));
    return piece;
  }

 private:
  float* next_;
};

// One panel's columns of b, ready for the blocks of rows.
struct PanelMatrix {
  const Matmul *product, *rest_product;
  const void *b, *rest_b;  // a lower last block may want another layout: it reads the plain matrix
  const float* bias;
  int64_t full;                          // rows of all blocks but a lower last one
  int64_t scratch, sums_bytes, a_bytes;  // of a thread's room
  int rooms;
};

// Chooses the primitives, then widens and reorders what all blocks of rows share.
bool PreparePanel(CpuBackend& backend, const PanelProduct& p, int64_t column, int64_t columns,
                  PanelMatrix* matrix) {
  const bool native = backend.products() == Bfloat16Products::kNative;
  const bool by_column = p.strides.row == 1;  // b's columns are contiguous
  const Strides compact = by_column ? Strides{1, p.k} : Strides{columns, 1};
  MatmulShape shape = {.m = std::min(p.rows, kRowBlock),
                       .k = p.k,
                       .n = columns,
                       .a = {p.k, 1},
                       .b = native ? p.strides : compact,
                       .c_row = columns,
                       .packed = p.rows >= kRowsToPack,
                       .bias = p.bias != nullptr,
                       .bfloat16 = native};
  matrix->full = shape.m;
  const Matmul& product = backend.matmuls().Get(shape);
  matrix->product = matrix->rest_product = &product;
  const bool packs = shape.packed;
  if (p.rows % matrix->full != 0) {
    shape.m = p.rows % matrix->full;
    shape.packed = false;
    matrix->rest_product = &backend.matmuls().Get(shape);
  }
  matrix->scratch = std::max(product.scratch_bytes(), matrix->rest_product->scratch_bytes());
  matrix->sums_bytes = FloatBytes(matrix->full * columns);
  matrix->a_bytes = native ? 0 : FloatBytes(matrix->full * p.k);

  const int64_t bias_bytes = p.bias == nullptr ? 0 : FloatBytes(columns);
  const int64_t wide_bytes = native ? 0 : FloatBytes(p.k * columns);
  const int64_t packed_bytes = packs ? product.packed_bytes() : 0;
  const int64_t shared_bytes = Padded(bias_bytes) + Padded(wide_bytes) + Padded(packed_bytes);
  Carver shared(backend.ReserveShared(std::max<int64_t>(64, shared_bytes)));
  matrix->rooms = backend.ReserveRooms(Padded(matrix->scratch) + 2 * Padded(matrix->sums_bytes) +
                                       matrix->a_bytes);
  if (!shared.valid() || matrix->rooms == 0) return false;
  float *bias = shared.Take(bias_bytes), *wide = shared.Take(wide_bytes);
  float* packed = shared.Take(packed_bytes);
  if (p.bias != nullptr) Widen(p.bias + column, bias, columns);
  matrix->bias = bias;
  const Bfloat16* plain = p.b + column * p.strides.column;
  if (!native) {
    const int64_t lines = by_column ? columns : p.k, length = by_column ? p.k : columns;
    const int64_t stride = by_column ? p.strides.column : p.strides.row;
    backend.ForEachBlock(lines, kWidenLines, [&](int64_t first, int64_t count, int) {
      WidenRows(plain + first * stride, stride, wide + first * length, count, length);
    });
  }
  matrix->rest_b = native ? static_cast<const void*>(plain) : wide;
  matrix->b = packs ? packed : matrix->rest_b;
  if (packs) product.Pack(matrix->rest_b, packed);
  return true;
}

bool RunPanel(CpuBackend& backend, const PanelProduct& p, int64_t column, int64_t columns,
              PanelBody finish) {
  PanelMatrix matrix;
  if (!PreparePanel(backend, p, column, columns, &matrix)) return false;
  backend.ForEachBlock(
      matrix.rooms, p.rows, kRowBlock, [&](int64_t first, int64_t count, int worker) {
        Carver room(backend.WorkerScratch(worker));
        float* scratch = room.Take(matrix.scratch);
        const Panel panel = {.row = first,
                             .rows = count,
                             .column = column,
                             .columns = columns,
                             .sums = room.Take(matrix.sums_bytes),
                             .room = room.Take(matrix.sums_bytes)};
        const void* a = p.a + first * p.k;
        if (backend.products() == Bfloat16Products::kWidened) {
          float* wide = room.Take(matrix.a_bytes);
          Widen(p.a + first * p.k, wide, count * p.k);
          a = wide;
        }
        const bool whole = count == matrix.full;
        (whole ? matrix.product : matrix.rest_product)
            ->Execute(a, whole ? matrix.b : matrix.rest_b, matrix.bias, panel.sums, scratch);
        finish(panel);
      });
  return true;
}

// d_weight += dy[rows]^T x[rows]. x is reordered or widened once for all tasks.
bool AddSomeRows(CpuBackend& backend, const Tensor& all_dy, const Tensor& all_x, const Tensor& sums,
                 int64_t row, int64_t rows) {
  const SerialOpenMp serial;
  const bool native = backend.products() == Bfloat16Products::kNative;
  const int64_t out = all_dy.shape()[1], in = all_x.shape()[1];
  const int64_t full = std::min(out, kWeightBlock), rest = out % full;
  const auto shape = [&](int64_t m, bool packed) {
    return MatmulShape{.m = m,
                       .k = rows,
                       .n = in,
                       .a = native ? Strides{1, out} : Strides{1, m},
                       .b = {in, 1},
                       .c_row = in,
                       .packed = packed,
                       .accumulate = true,
                       .bfloat16 = native};
  };
  const Matmul& product = backend.matmuls().Get(shape(full, native));
  const Matmul& rest_product = rest == 0 ? product : backend.matmuls().Get(shape(rest, false));
  float* shared = backend.ReserveShared(native ? product.packed_bytes() : FloatBytes(rows * in));
  const int64_t product_scratch =
      Padded(std::max(product.scratch_bytes(), rest_product.scratch_bytes()));
  const int64_t wide_dy = native ? 0 : FloatBytes(rows * full);
  const int rooms = backend.ReserveRooms(product_scratch + wide_dy);
  if (shared == nullptr || rooms == 0) return false;

  const Bfloat16 *dy = all_dy.data<Bfloat16>() + row * out, *x = all_x.data<Bfloat16>() + row * in;
  if (native) {
    product.Pack(x, shared);
  } else {
    backend.ForEachBlock(rows, kWidenLines, [&](int64_t first, int64_t count, int) {
      Widen(x + first * in, shared + first * in, count * in);
    });
  }
  float* d_weight = sums.data<float>();
  backend.ForEachBlock(rooms, out, kWeightBlock, [&](int64_t first, int64_t count, int worker) {
    Carver carver(backend.WorkerScratch(worker));
    float* scratch = carver.Take(product_scratch);
    const void *a = dy + first, *b = shared;
    if (!native) {
      float* wide = carver.Take(wide_dy);
      WidenRows(dy + first, out, wide, rows, count);
      a = wide;
    } else if (count != full) {
      b = x;  // not reordered for this one
    }
    (count == full ? product : rest_product).Execute(a, b, nullptr, d_weight + first * in, scratch);
  });
  return true;
}

}  // namespace

void Panel::Round(float* values, Bfloat16* matrix, int64_t stride) const {
  NarrowRows(values, matrix + row * stride + column, stride, rows, columns);
}

void Panel::RoundSum(float* values, const Bfloat16* addend, Bfloat16* matrix,
                     int64_t stride) const {
  const int64_t place = row * stride + column;
  NarrowSumRows(values, addend + place, matrix + place, stride, rows, columns);
}

void RunPanelProduct(CpuBackend& backend, const PanelProduct& p, PanelBody finish) {
  const SerialOpenMp serial;  // primitives are made for one thread
  const int64_t panels = (p.n + kPanelColumns - 1) / kPanelColumns;
  const int64_t width = RoundedUp((p.n + panels - 1) / panels, 64);
  for (int64_t column = 0; column < p.n; column += width) {
    if (!RunPanel(backend, p, column, std::min(width, p.n - column), finish)) return;
  }
}

void AddWeightGradientBfloat16(CpuBackend& backend, const Tensor& dy, const Tensor& x,
                               const Tensor& d_weight) {
  const int64_t rows = dy.shape()[0];
  for (int64_t row = 0; row < rows; row += kGradientRows) {
    if (!AddSomeRows(backend, dy, x, d_weight, row, std::min(kGradientRows, rows - row))) return;
  }
}

}  // namespace stagecoach::cpu
