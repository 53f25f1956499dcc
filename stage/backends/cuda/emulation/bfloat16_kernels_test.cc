// Every operation in bfloat16 on the kernels' own source: against float32 on the widened inputs,
// and against itself where arrays do not lie on multiples of 16 bytes.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "base/bfloat16.h"
#include "gtest/gtest.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {
namespace {

using conformance::Bench;
using conformance::Disagreement;
using conformance::Output;
using conformance::Outputs;
using conformance::TestStream;

// Tensors whose values a bfloat16 holds, in either type: both backends compute from the same
// numbers. An activation is of the type, everything else is F32.
class TypedBench {
 public:
  TypedBench(Backend& backend, DType type) : backend_(backend), type_(type), bench_(backend) {}

  Backend& backend() { return backend_; }
  Tensor Activation(Shape shape, float scale = 1.0f) { return In(type_, Rounded(shape, scale)); }
  Tensor BlankActivation(Shape shape) { return bench_.Blank(std::move(shape), type_); }
  Tensor Float(Shape shape, float scale = 1.0f) { return bench_.Normal(std::move(shape), scale); }
  Tensor Blank(Shape shape, DType type = DType::kF32) { return bench_.Blank(shape, type); }
  Tensor Indices(int64_t count, int64_t bound) { return bench_.Indices(count, bound); }
  // An activation as the next operation would find it in bfloat16.
  void Round(const Tensor& activation) {
    if (activation.dtype() == DType::kBF16) return;
    const Tensor narrow = bench_.Blank(activation.shape(), DType::kBF16);
    backend_.Convert(activation, narrow);
    backend_.Convert(narrow, activation);
  }

  Output Read(const std::string& name, const Tensor& tensor) {
    if (tensor.dtype() != DType::kBF16) return bench_.Read(name, tensor);
    Tensor wide = bench_.Blank(tensor.shape());
    backend_.Convert(tensor, wide);
    return bench_.Read(name, wide);
  }

 private:
  Tensor Rounded(const Shape& shape, float scale) {
    const Tensor normal = bench_.Normal(shape, scale);
    const Tensor narrow = bench_.Blank(shape, DType::kBF16);
    backend_.Convert(normal, narrow);
    return narrow;
  }
  Tensor In(DType type, const Tensor& narrow) {
    if (type == DType::kBF16) return narrow;
    Tensor wide = bench_.Blank(narrow.shape());
    backend_.Convert(narrow, wide);
    return wide;
  }

  Backend& backend_;
  const DType type_;
  Bench bench_;
};

constexpr double kTolerance = 2e-2;

void ExpectAgreement(const std::string& name, const std::function<Outputs(TypedBench&)>& run) {
  const auto emulated = MakeEmulatedBackend({}), reference = MakeReferenceBackend({});
  TypedBench narrow(*emulated, DType::kBF16), wide(*reference, DType::kF32);
  const Outputs actual = run(narrow);
  EXPECT_EQ(Disagreement(actual, run(wide), kTolerance), "") << name;
  // Threads in the other order: the same bits.
  const auto turned = MakeEmulatedBackend({.threads = 2});
  TypedBench again(*turned, DType::kBF16);
  EXPECT_EQ(Disagreement(run(again), actual, 0.0), "") << name << ", other order of threads";
  emulation::SetOrder(emulation::Order::kAscending);
}

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

TEST(Bfloat16Kernels, Elementwise) {
  for (const int64_t n : {1, 7, 8, 17, 1000, 4099}) {
    ExpectAgreement("gelu", [=](TypedBench& b) {
      const Tensor x = b.Activation({n}, 3.0f), y = b.BlankActivation({n});
      b.backend().GeluForward({.x = x, .y = y});
      const Tensor dy = b.Activation({n}), dx = b.BlankActivation({n});
      b.backend().GeluBackward({.dy = dy, .x = x, .dx = dx});
      return Outputs{b.Read("y", y), b.Read("dx", dx)};
    });
    ExpectAgreement("dropout, add, fill", [=](TypedBench& b) {
      const Tensor x = b.Activation({n}), y = b.BlankActivation({n}), z = b.BlankActivation({n});
      b.backend().Dropout({.x = x, .y = y, .rate = 0.3, .stream = TestStream()});
      b.backend().Add({.x = x, .y = y});
      b.backend().Fill(z, 0.25f);
      return Outputs{b.Read("y", y), b.Read("z", z)};
    });
  }
}

TEST(Bfloat16Kernels, LayerNorm) {
  for (const int64_t rows : {1, 67}) {
    for (const int64_t width : {5, 8, 96, 257, 2304}) {
      if (rows * width > 40000) continue;
      ExpectAgreement("layer norm", [=](TypedBench& b) {
        const Tensor x = b.Activation({rows, width}, 2.0f), weight = b.Float({width});
        const Tensor bias = b.Float({width}), mean = b.Blank({rows}), rstd = b.Blank({rows});
        const Tensor y = b.BlankActivation({rows, width}), dx = b.BlankActivation({rows, width});
        b.backend().LayerNormForward(
            {.x = x, .weight = weight, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
        const Tensor dy = b.Activation({rows, width});
        b.backend().LayerNormBackwardInput(
            {.dy = dy, .x = x, .weight = weight, .mean = mean, .rstd = rstd, .dx = dx});
        const Tensor d_weight = b.Float({width}), d_bias = b.Float({width});
        b.backend().LayerNormBackwardWeight(
            {.dy = dy, .x = x, .mean = mean, .rstd = rstd, .d_weight = d_weight, .d_bias = d_bias});
        Outputs outputs = {b.Read("y", y), b.Read("mean", mean), b.Read("d_weight", d_weight),
                           b.Read("d_bias", d_bias)};
        if (width > 5) outputs.push_back(b.Read("dx", dx));  // of 5 numbers little is left
        return outputs;
      });
    }
  }
}

TEST(Bfloat16Kernels, Attention) {
  struct Size {
    int64_t sequences, context, heads, head_width;
  };
  for (const Size& s :
       {Size{1, 1, 1, 5}, Size{2, 37, 2, 33}, Size{1, 70, 2, 64}, Size{1, 40, 1, 128}}) {
    for (const double dropout : {0.0, 0.2}) {
      ExpectAgreement("attention", [=](TypedBench& b) {
        const int64_t n = s.sequences * s.context, width = s.heads * s.head_width;
        const AttentionShape shape = {s.sequences, s.context, s.heads,
                                      width,       dropout,   TestStream()};
        const Tensor qkv = b.Activation({n, 3 * width}), out = b.BlankActivation({n, width});
        const Tensor lse = b.Blank({s.sequences, s.heads, s.context});
        b.backend().AttentionForward({.shape = shape, .qkv = qkv, .out = out, .log_sum_exp = lse});
        b.Round(out);
        const Tensor d_qkv = b.BlankActivation({n, 3 * width});
        b.backend().AttentionBackward({.shape = shape,
                                       .d_out = b.Activation({n, width}),
                                       .qkv = qkv,
                                       .out = out,
                                       .log_sum_exp = lse,
                                       .d_qkv = d_qkv});
        return Outputs{b.Read("out", out), b.Read("lse", lse), b.Read("d_qkv", d_qkv)};
      });
    }
  }
}

TEST(Bfloat16Kernels, Embedding) {
  struct Size {
    int64_t rows, vocabulary, width, context;
  };
  for (const Size& s : {Size{1, 1, 1, 1}, Size{300, 7, 24, 25}, Size{40, 300, 13, 20}}) {
    ExpectAgreement("embedding", [=](TypedBench& b) {
      const Tensor ids = b.Indices(s.rows, s.vocabulary), y = b.BlankActivation({s.rows, s.width});
      b.backend().EmbeddingForward({.ids = ids,
                                    .token = b.Activation({s.vocabulary, s.width}),
                                    .position = b.Activation({s.context, s.width}),
                                    .context = s.context,
                                    .y = y});
      const Tensor d_token = b.Float({s.vocabulary, s.width});
      const Tensor d_position = b.Float({s.context, s.width});
      b.backend().EmbeddingBackward({.ids = ids,
                                     .dy = b.Activation({s.rows, s.width}),
                                     .context = s.context,
                                     .d_token = d_token,
                                     .d_position = d_position});
      return Outputs{b.Read("y", y), b.Read("d_token", d_token), b.Read("d_position", d_position)};
    });
  }
}

TEST(Bfloat16Kernels, CrossEntropy) {
  for (const int64_t vocabulary : {1, 7, 48, 257, 9001}) {
    for (const bool in_place : {false, true}) {
      ExpectAgreement("cross-entropy", [=](TypedBench& b) {
        const Tensor logits = b.Activation({5, vocabulary}, 2.0f);
        const Tensor loss = b.Blank({1}, DType::kF64);
        const Tensor d_logits = in_place ? logits : b.BlankActivation({5, vocabulary});
        b.backend().CrossEntropy({.logits = logits,
                                  .targets = b.Indices(5, vocabulary),
                                  .scale = 0.5f,
                                  .loss = loss,
                                  .d_logits = d_logits});
        return Outputs{b.Read("loss", loss), b.Read("d_logits", d_logits)};
      });
    }
  }
}

Outputs LinearBothWays(TypedBench& b, int64_t rows, int64_t in, int64_t out, bool bias, bool gelu) {
  LinearForwardArgs forward = {.x = b.Activation({rows, in}),
                               .weight = b.Activation({out, in}, 0.1f),
                               .y = b.BlankActivation({rows, out})};
  if (bias) forward.bias = b.Activation({out});
  if (gelu) forward.activation = b.BlankActivation({rows, out});
  b.backend().LinearForward(forward);
  LinearBackwardInputArgs input = {.dy = b.Activation({rows, out}),
                                   .weight = forward.weight,
                                   .dx = b.BlankActivation({rows, in})};
  if (gelu) input.gelu_input = b.Activation({rows, in}, 2.0f);
  b.backend().LinearBackwardInput(input);
  LinearBackwardWeightArgs weight = {
      .dy = input.dy, .x = forward.x, .d_weight = b.Float({out, in})};
  if (bias) weight.d_bias = b.Float({out});
  b.backend().LinearBackwardWeight(weight);
  Outputs outputs = {b.Read("y", forward.y), b.Read("dx", input.dx),
                     b.Read("d_weight", weight.d_weight)};
  if (gelu) outputs.push_back(b.Read("activation", forward.activation));
  if (bias) outputs.push_back(b.Read("d_bias", weight.d_bias));
  return outputs;
}

// Fused, and by a library that fuses nothing.
TEST(Bfloat16Kernels, Linear) {
  struct Size {
    int64_t rows, in, out;
  };
  for (const Size& s : {Size{1, 1, 1}, Size{3, 17, 33}, Size{129, 24, 40}, Size{40, 96, 65}}) {
    for (const bool bias : {false, true}) {
      for (const bool gelu : {false, true}) {
        const auto run = [=](TypedBench& b) {
          return LinearBothWays(b, s.rows, s.in, s.out, bias, gelu);
        };
        ExpectAgreement("linear", run);
        EmulatedBackend plain({}, /*fuse=*/false);
        const auto reference = MakeReferenceBackend({});
        TypedBench narrow(plain, DType::kBF16), wide(*reference, DType::kF32);
        EXPECT_EQ(Disagreement(run(narrow), run(wide), kTolerance), "") << "not fused";
      }
    }
  }
}

TEST(Bfloat16Kernels, TensorFloatRoundsTheArgumentsOfProductsOnlyWhereTheJobAsksForIt) {
  const auto run = [](Precision precision) {
    const auto backend = MakeEmulatedBackend({});
    backend->SetPrecision(precision);
    Bench bench(*backend);
    const LinearForwardArgs args = {.x = bench.From({1.0f + 0x1p-11f, 3.0f}, {1, 2}),
                                    .weight = bench.From({1.0f, 0x1p-12f}, {1, 2}),
                                    .y = bench.Blank({1, 1})};
    backend->LinearForward(args);
    return args.y.data<float>()[0];
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
    backend->AdamW({.value = value,
                    .gradient = bench.Normal({n}),
                    .m = bench.Normal({n}, 0.1f),
                    .v = bench.From(std::vector<float>(n, 0.5f), {n}),
                    .learning_rate = 0.1f,
                    .beta1 = 0.9f,
                    .beta2 = 0.99f,
                    .epsilon = 1e-8f,
                    .compute = compute});
    expect_rounded();
    backend->Sgd(
        {.value = value, .gradient = bench.Normal({n}), .learning_rate = 0.1f, .compute = compute});
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
    CHECK(Add(nullptr, x_data, y_data, kAll) == cudaSuccess);
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
  const AddArgs args = {.x = bench.Normal({4}), .y = bench.Blank({4}, DType::kBF16)};
  EXPECT_DEATH(backend->Add(args), "Add of F32 was given BF16");
  EXPECT_DEATH(backend->Fill(bench.Indices(3, 3), 0.0f), "Fill of I32");
}

}  // namespace
}  // namespace stagecoach::cuda
