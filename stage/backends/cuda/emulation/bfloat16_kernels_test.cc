// What the conformance rows do not show of bfloat16 and of packs: the roundings themselves, arrays
// that do not lie on multiples of 16 bytes, mixed types.
#include <cmath>
#include <cstring>
#include <vector>

#include "base/numbers/bfloat16.h"
#include "gtest/gtest.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/kernels/norms/layer_norm.h"
#include "stage/backends/cuda/kernels/pointwise/activations.h"
#include "stage/backends/cuda/kernels/pointwise/add.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::cuda {
namespace {

using conformance::Bench;
using conformance::TestStream;

TEST(Bfloat16Kernels, ConvertsAsTheHostDoes) {
  const auto backend = MakeEmulatedBackend({});
  Bench bench(*backend);
  std::vector<float> values = {0.0f,      -0.0f,  1.0f,    1.00390625f, 1.01171875f,
                               3.4e38f,   1e-40f, -1e-45f, 65504.f,     INFINITY,
                               -INFINITY, NAN,    1.0039f, -2.7f,       1e30f};
  const int64_t n = static_cast<int64_t>(values.size());
  const Tensor x = bench.From(values, {n}), y = bench.Blank({n}, DType::kBF16);
  const Tensor z = bench.Blank({n});
  backend->Convert(x, y);
  backend->Convert(y, z);
  for (int64_t i = 0; i < n; ++i) {
    const Bfloat16 expected(values[i]);
    EXPECT_EQ(y.data<Bfloat16>()[i].bits, expected.bits) << values[i];
    const float wide = static_cast<float>(expected);
    EXPECT_EQ(std::memcmp(&z.data<float>()[i], &wide, sizeof wide), 0) << values[i];
  }
}

TEST(Bfloat16Kernels, TensorFloatRoundsTheArgumentsOfProductsOnlyWhereTheJobAsksForIt) {
  const auto run = [](Precision precision) {
    const auto backend = MakeEmulatedBackend({});
    backend->SetPrecision(precision);
    Bench bench(*backend);
    const Tensor x = bench.From({1.0f + 0x1p-11f, 3.0f}, {1, 2}), y = bench.Blank({1, 1});
    const Tensor weight = bench.From({1.0f, 0x1p-12f}, {1, 2});
    RunOn(*backend, {.operation = "linear", .inputs = {x, Whole(weight)}, .outputs = {y}});
    return y.data<float>()[0];
  };
  EXPECT_EQ(run(Precision::kFloat32), 1.0f + 0x1p-11f + 3 * 0x1p-12f);
  EXPECT_EQ(run(Precision::kTensorFloat32), 1.0f + 0x1p-10f + 3 * 0x1p-12f);
}

TEST(Bfloat16Kernels, OptimizersRoundTheNewValueForTheOperations) {
  for (const int64_t n : {1, 7, 1000}) {
    const auto backend = MakeEmulatedBackend({});
    Bench bench(*backend);
    const Tensor value = bench.Normal({n}), compute = bench.Blank({n}, DType::kBF16);
    const auto expect_rounded = [&] {
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(compute.data<Bfloat16>()[i].bits, Bfloat16(value.data<float>()[i]).bits) << i;
      }
    };
    const Tensor v = bench.From(std::vector<float>(n, 0.5f), {n});
    UpdateOn(*backend,
             {.operation = "adamw_update",
              .adds = {bench.Normal({n}), value, bench.Normal({n}, 0.1f), v, compute}},
             {.learning_rate = 0.1});
    expect_rounded();
    UpdateOn(*backend, {.operation = "sgd_update", .adds = {bench.Normal({n}), value, compute}},
             {.learning_rate = 0.1});
    expect_rounded();
  }
}

// The same elements at an address that is no multiple of 16: element by element, the same bits.
template <typename T>
void ExpectSameBitsWhereverArraysLie() {
  constexpr int64_t kRows = 5, kWidth = 48, kAll = kRows * kWidth;
  const auto run = [&](int64_t offset) {
    std::vector<T> x(kAll + 16), y(kAll + 16);
    std::vector<float> weight(kWidth + 16), mean(kRows), rstd(kRows), sums(kWidth, 0.0f);
    std::vector<float> scratch(kWidth * 2);
    T* const x_data = x.data() + offset;
    T* const y_data = y.data() + offset;
    for (int64_t i = 0; i < kAll; ++i) {
      x_data[i] = FromFloat<T>(RandomNormal(TestStream(), static_cast<uint64_t>(i)));
    }
    for (int64_t i = 0; i < kWidth; ++i) weight[i + offset] = 0.25f * static_cast<float>(i);
    CHECK(LayerNorm(nullptr, {kRows, kWidth}, x_data, weight.data() + offset,
                    weight.data() + offset, 1e-5f, y_data, mean.data(),
                    rstd.data()) == cudaSuccess);
    CHECK(Gelu(nullptr, y_data, y_data, kAll - 3) == cudaSuccess);
    CHECK(Add(nullptr, x_data, y_data, y_data, kAll) == cudaSuccess);
    CHECK(ColumnSum(nullptr, y_data, sums.data(), kRows, kWidth, scratch.data()) == cudaSuccess);
    std::vector<float> all(sums);
    for (int64_t i = 0; i < kAll; ++i) all.push_back(ToFloat(y_data[i]));
    return all;
  };
  EXPECT_EQ(run(0), run(1));
  EXPECT_EQ(run(0), run(2));
}

TEST(Bfloat16Kernels, HaveTheSameBitsWhereverArraysLie) {
  ExpectSameBitsWhereverArraysLie<float>();
  ExpectSameBitsWhereverArraysLie<Bf16>();
}

TEST(Bfloat16KernelsDeathTest, MixedTypesAreABug) {
  const auto backend = MakeEmulatedBackend({});
  Bench bench(*backend);
  const Tensor x = bench.Normal({4}), y = bench.Blank({4}, DType::kBF16);
  const TensorCall mixed{.operation = "gelu", .inputs = {x}, .outputs = {y}};
  EXPECT_DEATH(RunOn(*backend, mixed), "gelu of BF16 was given F32");
  EXPECT_DEATH(backend->Fill(bench.Indices(3, 3), 0.0f), "Fill of I32");
}

}  // namespace
}  // namespace stagecoach::cuda
