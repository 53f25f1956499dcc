// Small matrix products C = A B or C += A B for the attention kernels: B's rows are contiguous
// vectors, A is read element by element with any strides (so A^T costs nothing).
// The order of additions of an element of C depends on k alone, not on the tile it falls into.
#if defined(STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_TILE_INL_H_
#undef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_TILE_INL_H_
#else
#define STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_TILE_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "stage/backends/cpu/vector/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 6 x 4 sums, 4 vectors of B and one of A fill the 32 registers of AVX-512; 6 x 2 the 16 of AVX2.
constexpr int kTileRows = 6;
constexpr int kTileVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// An operand that is read by element: value(row, k) = data[row * row_stride + k * k_stride].
struct Scalars {
  const float* data;
  int64_t row_stride, k_stride;
  Scalars FromRow(int64_t row) const { return {data + row * row_stride, row_stride, k_stride}; }
};
// Rows of vectors: data[row * stride + column].
struct Rows {
  const float* data;
  int64_t stride;
};

template <int kRows, int kVectors>
HWY_INLINE void Tile(const Scalars& a, const Rows& b, float* c, int64_t c_stride, int64_t k,
                     bool add) {
  const F32 d;
  const int64_t lanes = FloatLanes();
  F32Vec sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = add ? hn::LoadU(d, c + r * c_stride + v * lanes) : hn::Zero(d);
    }
  }
  const float *ap = a.data, *bp = b.data;
  for (int64_t p = 0; p < k; ++p, ap += a.k_stride, bp += b.stride) {
    F32Vec row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, bp + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const auto scalar = hn::Set(d, ap[r * a.row_stride]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(scalar, row[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * c_stride + v * lanes);
  }
}

template <int kRows>
HWY_INLINE void TileColumns(const Scalars& a, Rows b, float* c, int64_t c_stride, int64_t k,
                            int64_t columns, bool add) {
  const int64_t lanes = FloatLanes(), wide = kTileVectors * lanes;
  int64_t j = 0;
  for (; j + wide <= columns; j += wide) {
    Tile<kRows, kTileVectors>(a, {b.data + j, b.stride}, c + j, c_stride, k, add);
  }
  for (; j < columns; j += lanes) {
    Tile<kRows, 1>(a, {b.data + j, b.stride}, c + j, c_stride, k, add);
  }
}

// C[rows, columns] for rows <= kTileRows. `columns` is rounded up to whole vectors; B and C must
// have room for these.
inline HWY_NOINLINE void Strip(int64_t rows, const Scalars& a, const Rows& b, float* c,
                               int64_t c_stride, int64_t k, int64_t columns, bool add) {
  if (rows == kTileRows) {
    TileColumns<kTileRows>(a, b, c, c_stride, k, columns, add);
    return;
  }
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    TileColumns<2>(a.FromRow(r), b, c + r * c_stride, c_stride, k, columns, add);
  }
  if (r < rows) TileColumns<1>(a.FromRow(r), b, c + r * c_stride, c_stride, k, columns, add);
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
