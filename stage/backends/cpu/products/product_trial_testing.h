// A product (matmul.h) in guarded memory, beside plain loops.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_PRODUCT_TRIAL_TESTING_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_PRODUCT_TRIAL_TESTING_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/cpu/primitives/matmul.h"
#include "stage/backends/cpu/primitives/worker_pool.h"
#include "stage/backends/cpu/testing/guarded_numbers.h"

namespace stagecoach::cpu {

inline std::string NameOf(const MatmulShape& s) {
  return absl::StrCat("product [", s.m, ", ", s.k, "] of strides ", s.a.row, ", ", s.a.column,
                      " by [", s.k, ", ", s.n, "] of strides ", s.b.row, ", ", s.b.column,
                      ", rows of sums at ", s.c_row, s.packed ? ", packed" : "",
                      s.bias ? ", bias" : "", s.accumulate ? ", accumulated" : "",
                      s.bfloat16 ? ", bfloat16" : "");
}

// A product's operands, and the expected sums: the same for each way to run it.
struct ProductNumbers {
  Numbers a, b, bias, c, expected;

  explicit ProductNumbers(const MatmulShape& s)
      : a(SizeOf(s.m, s.k, s.a), 1),
        b(SizeOf(s.k, s.n, s.b), 2),
        bias(s.n, 3),
        c(SizeOf(s.m, s.n, {s.c_row, 1}), 4),
        expected(c) {
    // Pointers: most of the test's time goes here, in a program that is compiled without much optimization.
    for (int64_t i = 0; i < s.m; ++i) {
      const float* const row = a.values.data() + i * s.a.row;
      for (int64_t j = 0; j < s.n; ++j) {
        const float* const column = b.values.data() + j * s.b.column;
        float sum = s.accumulate ? c[i * s.c_row + j] : s.bias ? bias[j] : 0.0f;
        for (int64_t k = 0; k < s.k; ++k) sum += row[k * s.a.column] * column[k * s.b.row];
        expected[i * s.c_row + j] = sum;
      }
    }
  }

 private:
  static int64_t SizeOf(int64_t rows, int64_t columns, Strides strides) {
    return (rows - 1) * strides.row + (columns - 1) * strides.column + 1;
  }
};

// A matrix as a product reads it. A product may write nothing between its rows.
struct GuardedMatrix : GuardedMemory {
  GuardedMatrix(std::string name, const Numbers& numbers, bool bfloat16, GuardedSide side)
      : GuardedMemory(std::move(name), numbers.size() * (bfloat16 ? 2 : 4), side) {
    for (int64_t i = 0; i < numbers.size(); ++i) {
      if (bfloat16) {
        data<Bfloat16>()[i] = Bfloat16(numbers[i]);
      } else {
        data()[i] = numbers[i];
      }
    }
  }
};

// The first fault, or empty. `numbers` are those of a shape that differs in `packed` at most.
inline std::string RunProduct(const Matmul& product, const MatmulShape& s,
                              const ProductNumbers& numbers, GuardedSide side) {
  const SerialOpenMp serial;
  const GuardedMatrix a("left matrix", numbers.a, s.bfloat16, side);
  const GuardedMatrix b("right matrix", numbers.b, s.bfloat16, side);
  const GuardedMatrix bias("bias", numbers.bias, false, side);
  const GuardedMatrix c("sums", numbers.c, false, side);
  const GuardedMemory packed("packed matrix", s.packed ? product.packed_bytes() : 0, side);
  const GuardedMemory scratch("scratch", product.scratch_bytes(), side);
  const std::string outside = GuardedMemory::Outside([&] {
    if (s.packed) product.Pack(b.data<void>(), packed.data<void>());
    product.Execute(a.data<void>(), s.packed ? packed.data<void>() : b.data<void>(),
                    s.bias ? bias.data() : nullptr, c.data(), scratch.data<void>());
  });
  if (!outside.empty()) return outside;
  return Difference(c.data(), numbers.expected.values.data(), numbers.expected.size());
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_PRODUCT_TRIAL_TESTING_H_
