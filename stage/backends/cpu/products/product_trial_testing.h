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

// A matrix as a product reads it. A product may write nothing between its rows.
struct GuardedMatrix : GuardedMemory {
  const Numbers numbers;
  GuardedMatrix(std::string name, int64_t rows, int64_t columns, Strides strides, bool bfloat16,
                uint64_t seed, GuardedSide side)
      : GuardedMemory(std::move(name), Size(rows, columns, strides) * (bfloat16 ? 2 : 4), side),
        numbers(Size(rows, columns, strides), seed) {
    for (int64_t i = 0; i < numbers.size(); ++i) {
      if (bfloat16) {
        data<Bfloat16>()[i] = Bfloat16(numbers[i]);
      } else {
        data()[i] = numbers[i];
      }
    }
  }
  static int64_t Size(int64_t rows, int64_t columns, Strides strides) {
    return (rows - 1) * strides.row + (columns - 1) * strides.column + 1;
  }
};

inline std::string RunProduct(const Matmul& product, const MatmulShape& s, GuardedSide side) {
  const SerialOpenMp serial;
  const GuardedMatrix a("left matrix", s.m, s.k, s.a, s.bfloat16, 1, side);
  const GuardedMatrix b("right matrix", s.k, s.n, s.b, s.bfloat16, 2, side);
  const GuardedMatrix bias("bias", 1, s.n, {s.n, 1}, false, 3, side);
  const GuardedMatrix c("sums", s.m, s.n, {s.c_row, 1}, false, 4, side);
  const GuardedMemory packed("packed matrix", s.packed ? product.packed_bytes() : 0, side);
  const GuardedMemory scratch("scratch", product.scratch_bytes(), side);
  const std::string outside = GuardedMemory::Outside([&] {
    if (s.packed) product.Pack(b.data<void>(), packed.data<void>());
    product.Execute(a.data<void>(), s.packed ? packed.data<void>() : b.data<void>(),
                    s.bias ? bias.data() : nullptr, c.data(), scratch.data<void>());
  });
  if (!outside.empty()) return outside;
  // Pointers: most of the test's time goes here, in a program that is compiled without much optimization.
  Numbers expected = c.numbers;
  for (int64_t i = 0; i < s.m; ++i) {
    const float* const row = &a.numbers.values[static_cast<size_t>(i * s.a.row)];
    for (int64_t j = 0; j < s.n; ++j) {
      float& sum = expected[i * s.c_row + j];
      if (!s.accumulate) sum = s.bias ? bias.numbers[j] : 0;
      const float* const column = &b.numbers.values[static_cast<size_t>(j * s.b.column)];
      for (int64_t k = 0; k < s.k; ++k) sum += row[k * s.a.column] * column[k * s.b.row];
    }
  }
  return Difference(c.data(), expected.values.data(), expected.size());
}

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRODUCTS_PRODUCT_TRIAL_TESTING_H_
