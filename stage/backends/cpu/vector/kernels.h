// Kernels: loops that no library has, each over a range of elements, rows or columns. They are
// compiled for every instruction set and chosen at run time. Linear algebra is in matmul.h.
// Threads:   pure functions of their arguments; the callers cut the work into fixed blocks.
// Units and shapes: elements; matrices are row-major, `stride` is a row's distance in elements.
// Determinism: a value does not depend on its place in a range. The last, partial vector goes
//            through the same vector instructions as the others. Functions exp and log are
//            polynomials of our own or of Highway, never the C library's.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_KERNELS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_KERNELS_H_

#include <cstdint>

#include "base/numbers/bfloat16.h"

namespace stagecoach::cpu {

const char* KernelTarget();  // the instruction set chosen here, "AVX3"

// Convert between BF16 rows with `stride` and dense float32 (bfloat16.cc). Widening is exact.
// Narrowing rounds to nearest even and gives the bits of Bfloat16(float).
void WidenRows(const Bfloat16* x, int64_t stride, float* y, int64_t rows, int64_t columns);
void NarrowRows(const float* x, Bfloat16* y, int64_t stride, int64_t rows, int64_t columns);
// y = x + addend, rounded once; `stride` is addend's and y's.
void NarrowSumRows(const float* x, const Bfloat16* addend, Bfloat16* y, int64_t stride,
                   int64_t rows, int64_t columns);
inline void Widen(const Bfloat16* x, float* y, int64_t n) { WidenRows(x, n, y, 1, n); }
inline void Narrow(const float* x, Bfloat16* y, int64_t n) { NarrowRows(x, y, n, 1, n); }

// Elementwise over n elements (elementwise.cc). Outputs may be inputs.
void Gelu(const float* x, float* y, int64_t n);
void GeluBackward(const float* dy, const float* x, float* dx, int64_t n);  // dx = dy * gelu'(x)
void AddTo(const float* x, float* y, int64_t n);                           // y += x
void AddRows(const float* a, const float* b, float* y, int64_t n);         // y = a + b
void FillWith(float* y, float value, int64_t n);

// Column sums, of layer norm too, add up this many rows at a time. So the error does not grow with
// the number of rows alone. If a caller sums block by block into zeros, the bits are the same.
inline constexpr int64_t kSumRows = 64;
// sums[c] adds the sum over the rows of x[r, c], for c in [0, columns) (reductions.cc).
void ColumnSums(const float* x, float* sums, int64_t rows, int64_t stride, int64_t columns);
double SumOfSquares(const float* x, int64_t n);

// Returns -log softmax(logits)[target] of one row; d_logits may be null or logits
// (cross_entropy.cc).
double CrossEntropyRow(const float* logits, int32_t target, float scale, float* d_logits,
                       int64_t vocabulary);

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_KERNELS_H_
