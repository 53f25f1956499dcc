// The plan's bound of a product's scratch against what oneDNN asks for on this machine, for each
// instruction set that it has. Symptom: on AVX-512 the bound was up to 2.5 times what oneDNN took
// of float32, and 35 % below for bfloat16 with a depth that 32 does not divide.
#include "devices/host/product_scratch.h"

#include <cmath>
#include <iostream>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "stage/backends/cpu/primitives/matmul.h"
#include "stage/backends/cpu/primitives/worker_pool.h"
#include "stage/backends/cpu/testing/instruction_sets.h"

namespace stagecoach::cpu {
namespace {

class ProductDraw {
 public:
  bool Either() { return random_() % 2 == 0; }
  // The most, whole blocks of 64, and small ones as often as large ones.
  int64_t UpTo(int64_t most) {
    if (random_() % 4 == 0) return most;
    if (Either() && most >= 64) return 64 * (1 + static_cast<int64_t>(random_() % (most / 64)));
    const double share = static_cast<double>(random_() % 10000) / 10000.0;
    return static_cast<int64_t>(std::exp(std::log(static_cast<double>(most)) * share));
  }

 private:
  std::mt19937_64 random_{1};
};

// What the back end makes products of (float32_products.cc, bfloat16_products.cc,
// column_convolution.cc).
Product AnyProduct(ProductDraw& draw, bool bfloat16) {
  Product p{.turned = draw.Either(), .bfloat16 = bfloat16};
  if (p.turned) {
    // A convolution's places, at most a row of a wide picture, by its channels; else a block of
    // rows.
    const bool places = !bfloat16 && draw.Either();
    p.m = draw.UpTo(places ? 2000 : 96);
    p.k = draw.UpTo(bfloat16 ? 512 : places ? 1024 : 20000);
  } else {
    p.m = draw.UpTo(128);
    p.k = draw.UpTo(5000);
  }
  p.n = draw.UpTo(bfloat16 && !p.turned ? 1024 : 20000);
  p.packed = (bfloat16 || !p.turned) && draw.Either();
  return p;
}

// columns: B lies by columns. line: of A, where it is turned; a block of a wider matrix.
Matmul Make(const Product& p, bool columns, int64_t line) {
  const SerialOpenMp serial;
  return Matmul({.m = p.m,
                 .k = p.k,
                 .n = p.n,
                 .a = p.turned ? Strides{1, line} : Strides{p.k, 1},
                 .b = columns ? Strides{1, p.k} : Strides{p.n, 1},
                 .c_row = p.n,
                 .packed = p.packed,
                 .accumulate = p.turned,
                 .bfloat16 = p.bfloat16});
}

bool IsAnUpperBound() {
  const HostProfile host{.avx512 = OneDnnHasAvx512(), .native_bfloat16 = OneDnnHasBfloat16()};
  ProductDraw draw;
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    const Product p = AnyProduct(draw, host.native_bfloat16 && draw.Either());
    const Matmul product =
        Make(p, !p.turned && draw.Either(), p.m + (draw.Either() ? 0 : draw.UpTo(500)));
    const int64_t taken = product.scratch_bytes(), bound = ProductScratchBytes(p, host);
    const int64_t packed = p.packed ? product.packed_bytes() : 0;
    const int64_t packed_bound = PackedMatrixBytes(p.k, p.n, p.bfloat16 ? 2 : 4);
    if (taken <= bound && packed <= packed_bound) continue;
    ++wrong;
    std::cerr << (p.bfloat16 ? "bfloat16 " : "float32 ") << p.m << " x " << p.k << " x " << p.n
              << (p.turned ? ", turned" : "") << (p.packed ? ", packed" : "") << ": " << taken
              << " bytes, the plan says " << bound << "; packed " << packed << " and "
              << packed_bound << "\n";
  }
  std::cerr << "compared\n";
  return wrong == 0;
}

class ProductScratchDeathTest : public InstructionsDeathTest {};

TEST_P(ProductScratchDeathTest, IsAnUpperBoundOfWhatTheLibraryTakes) {
  EXPECT_EXIT(TryOn(GetParam(), IsAnUpperBound), testing::ExitedWithCode(0),
              "compared\n|no such instructions here");
}

INSTANTIATE_TEST_SUITE_P(On, ProductScratchDeathTest, AllInstructions(), NameOfSet);

}  // namespace
}  // namespace stagecoach::cpu
