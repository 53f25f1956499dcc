// Matmul: C[m, n] = A[m, k] B[k, n] (+ C, or + bias per column) by oneDNN. One single-threaded
// primitive per shape, created once. A and B are float32 or BF16; sums, bias and C are float32.
// Ownership: MatmulCache owns the primitives for the back end's life.
// Threads:   Get from the executor thread under SerialOpenMp; Matmul::Execute from any compute
//            thread at once, each with its own scratch.
// Units and shapes: elements. A matrix is given by the distances of its rows and columns. So a
//            transposed operand is a swap of the two.
// Determinism: a primitive's result depends on its shape and strides, oneDNN's version and the
//            instruction set only (one OpenMP thread, no address-dependent paths).
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_MATMUL_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_MATMUL_H_

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace stagecoach::cpu {

struct Strides {
  int64_t row = 0, column = 0;
  friend auto operator<=>(const Strides&, const Strides&) = default;
};

struct MatmulShape {
  int64_t m = 0, k = 0, n = 0;
  Strides a, b;
  int64_t c_row = 0;
  bool packed = false;      // B was reordered by Pack
  bool bias = false;        // + bias[n]
  bool accumulate = false;  // C +=
  bool bfloat16 = false;    // A and B are BF16; only where OneDnnHasBfloat16()
  friend auto operator<=>(const MatmulShape&, const MatmulShape&) = default;
};

class Matmul {
 public:
  explicit Matmul(const MatmulShape& shape);
  ~Matmul();

  int64_t scratch_bytes() const;
  int64_t packed_bytes() const;
  bool packed() const;
  // Number of the order that Pack makes. Products of one cache with equal k, n and strides of b may
  // read each other's packed matrices if it is the same.
  int packed_order() const { return packed_order_; }
  // Reorders the matrix at b (by the shape's strides) into packed.
  void Pack(const void* b, void* packed) const;
  // b: the packed matrix if the shape says so. bias: null if there is none.
  void Execute(const void* a, const void* b, const float* bias, float* c, void* scratch) const;

 private:
  friend class MatmulCache;
  bool ReadsOrderOf(const Matmul& other) const;

  struct State;
  std::unique_ptr<State> state_;
  int packed_order_ = 0;
};

class MatmulCache {
 public:
  const Matmul& Get(const MatmulShape& shape);

 private:
  std::map<MatmulShape, std::unique_ptr<Matmul>> primitives_;
  int orders_ = 0;
};

bool OneDnnHasBfloat16();  // by instructions, not by emulation
bool OneDnnHasAvx512();
std::string OneDnnFingerprint();  // "oneDNN 2.6.3 avx512_core_bf16"

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_MATMUL_H_
