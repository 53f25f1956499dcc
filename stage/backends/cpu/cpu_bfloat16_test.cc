// BF16 operations against the same operation in float32 on the widened inputs, its outputs rounded:
// the same bits, but for products, whose sums may be taken in another order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "hwy/targets.h"
#include "operations/attention/attention.h"
#include "operations/linear.h"
#include "operations/norms/layer_norm.h"
#include "operations/pointwise/dropout.h"
#include "operations/updates/sgd_update.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/loss_testing.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

using cpu::Bfloat16Products;

// Tensors of one operation in either type: the values of inputs fit BF16, and outputs of the
// operation's own type are read as BF16.
class Typed {
 public:
  Typed(Backend& backend, DType dtype) : backend_(backend), dtype_(dtype), bench_(backend) {}

  Bench& bench() { return bench_; }
  Tensor In(Shape shape, float scale = 1.0f) {
    const Tensor values = bench_.Normal(shape, scale);
    const Tensor rounded = bench_.Blank(shape, DType::kBF16);
    backend_.Convert(values, rounded);
    if (dtype_ == DType::kBF16) return rounded;
    backend_.Convert(rounded, values);
    return values;
  }
  Tensor Out(Shape shape) { return bench_.Blank(std::move(shape), dtype_); }
  Output Read(const std::string& name, const Tensor& tensor) {
    Tensor rounded = tensor;
    if (dtype_ == DType::kF32) {
      rounded = bench_.Blank(tensor.shape(), DType::kBF16);
      backend_.Convert(tensor, rounded);
    }
    const Tensor widened = bench_.Blank(tensor.shape());
    backend_.Convert(rounded, widened);
    return bench_.Read(name, widened);
  }

 private:
  Backend& backend_;
  const DType dtype_;
  Bench bench_;
};

// Rounded sums may be one place of BF16 apart where two orders of addition fall on two sides of a
// rounding boundary, and that is rare; sums that stay float32 may not.
constexpr double kPlace = 1.0 / 128, kSums = 1e-5;

struct Case {
  std::string name;
  double tolerance;
  std::function<Outputs(Backend&, DType)> run;
};

// One row; odd widths; rests of row blocks, of panels and of weight blocks; more rows than a weight
// gradient takes at a time.
struct Size {
  int64_t rows, in, out;
};
constexpr Size kSizes[] = {{1, 1, 1},       {3, 17, 33},    {63, 8, 1030},  {129, 17, 130},
                           {256, 1100, 48}, {1030, 96, 65}, {2100, 33, 200}};

void AddProducts(std::vector<Case>& cases) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, in = size.in, out = size.out;
    const std::string shape = absl::StrCat(" ", rows, "x", in, "x", out);
    for (const bool extra : {false, true}) {
      cases.push_back(
          {absl::StrCat("linear ", extra, shape), kPlace, [=](Backend& backend, DType dtype) {
             Typed t(backend, dtype);
             TensorCall call{
                 .operation = "linear",
                 .attributes = ToAttributes(LinearAttributes{.bias = extra, .gelu = extra}),
                 .inputs = {t.In({rows, in}), Whole(t.In({out, in}, 0.1f))},
                 .outputs = {t.Out({rows, out})}};
             if (extra) call.inputs.push_back(Whole(t.In({out})));
             if (extra) call.outputs.push_back(t.Out({rows, out}));
             RunOn(backend, call);
             Outputs outputs = {t.Read("y", call.outputs[0])};
             if (extra) outputs.push_back(t.Read("activation", call.outputs[1]));
             return outputs;
           }});
      cases.push_back({absl::StrCat("linear onto a residual ", extra, shape), kPlace,
                       [=](Backend& backend, DType dtype) {
                         Typed t(backend, dtype);
                         TensorCall call{.operation = "linear",
                                         .attributes = ToAttributes(
                                             LinearAttributes{.bias = extra, .residual = true}),
                                         .inputs = {t.In({rows, in}), Whole(t.In({out, in}, 0.1f))},
                                         .outputs = {t.Out({rows, out})}};
                         if (extra) call.inputs.push_back(Whole(t.In({out})));
                         call.inputs.push_back(t.In({rows, out}, 2.0f));
                         RunOn(backend, call);
                         return Outputs{t.Read("y", call.outputs[0])};
                       }});
      cases.push_back({absl::StrCat("linear_input_gradient ", extra, shape), kPlace,
                       [=](Backend& backend, DType dtype) {
                         Typed t(backend, dtype);
                         TensorCall call{
                             .operation = "linear_input_gradient",
                             .attributes =
                                 ToAttributes(LinearInputGradientAttributes{.gelu = extra}),
                             .inputs = {t.In({rows, out}), Whole(t.In({out, in}, 0.1f))},
                             .outputs = {t.Out({rows, in})}};
                         if (extra) call.inputs.push_back(t.In({rows, in}, 2.0f));
                         RunOn(backend, call);
                         return Outputs{t.Read("dx", call.outputs[0])};
                       }});
    }
    cases.push_back(
        {absl::StrCat("linear_weight_gradient", shape), kSums, [=](Backend& backend, DType dtype) {
           Typed t(backend, dtype);
           const Tensor d_weight = t.bench().Normal({out, in});
           const Tensor d_bias = t.bench().Normal({out});
           RunOn(backend, {.operation = "linear_weight_gradient",
                           .attributes = ToAttributes(LinearWeightGradientAttributes{.bias = true}),
                           .inputs = {t.In({rows, out}), t.In({rows, in})},
                           .adds = {d_weight, d_bias}});
           return Outputs{t.bench().Read("d_weight", d_weight), t.bench().Read("d_bias", d_bias)};
         }});
  }
}

void AddLayerNorms(std::vector<Case>& cases) {
  for (const int64_t width : {1, 13, 384, 3000}) {
    cases.push_back(
        {absl::StrCat("LayerNorm ", width), 0.0, [=](Backend& backend, DType dtype) {
           constexpr int64_t kRows = 75;
           Typed t(backend, dtype);
           Bench& bench = t.bench();
           const Tensor x = t.In({kRows, width}), dy = t.In({kRows, width});
           const Tensor weight = bench.Normal({width}), bias = bench.Normal({width});
           const Tensor mean = bench.Blank({kRows}), rstd = bench.Blank({kRows});
           const Tensor y = t.Out({kRows, width}), dx = t.Out({kRows, width});
           const Tensor sum = t.Out({kRows, width});
           const Tensor d_weight = bench.Normal({width}), d_bias = bench.Normal({width});
           const auto gradient = [](bool residual) {
             return ToAttributes(LayerNormGradientAttributes{.residual = residual});
           };
           RunOn(backend, {.operation = "layer_norm",
                           .inputs = {x, Whole(weight), Whole(bias)},
                           .outputs = {y, mean, rstd}});
           RunOn(backend, {.operation = "layer_norm_input_gradient",
                           .attributes = gradient(false),
                           .inputs = {dy, x, Whole(weight), mean, rstd},
                           .outputs = {dx}});
           RunOn(backend, {.operation = "layer_norm_input_gradient",
                           .attributes = gradient(true),
                           .inputs = {dy, x, Whole(weight), mean, rstd, t.In({kRows, width})},
                           .outputs = {sum}});
           RunOn(backend, {.operation = "layer_norm_weight_gradient",
                           .inputs = {dy, x, mean, rstd},
                           .adds = {d_weight, d_bias}});
           return Outputs{t.Read("y", y),
                          t.Read("dx", dx),
                          t.Read("dx onto a residual", sum),
                          bench.Read("mean", mean),
                          bench.Read("rstd", rstd),
                          bench.Read("d_weight", d_weight),
                          bench.Read("d_bias", d_bias)};
         }});
  }
}

void AddAttention(std::vector<Case>& cases) {
  for (const double dropout : {0.0, 0.2}) {
    cases.push_back(
        {absl::StrCat("Attention ", dropout), 0.0, [=](Backend& backend, DType dtype) {
           constexpr int64_t kContext = 101, kRows = 2 * kContext, kWidth = 3 * 20;
           const RandomStream stream = TestStream();
           const Attributes attributes = ToAttributes(
               AttentionAttributes{.heads = 3, .dropout = dropout, .draw = stream.operation});
           Typed t(backend, dtype);
           const Tensor qkv = t.In({kRows, 3 * kWidth}), out = t.Out({kRows, kWidth});
           const Tensor statistics = t.bench().Blank({2, 3, kContext});
           const Tensor d_qkv = t.Out({kRows, 3 * kWidth});
           RunOn(backend, {.operation = "attention",
                           .attributes = attributes,
                           .inputs = {qkv},
                           .outputs = {out, statistics},
                           .samples = 2,
                           .stream = stream});
           Outputs outputs = {t.Read("out", out), t.bench().Read("log_sum_exp", statistics)};
           const Tensor d_out = t.In({kRows, kWidth}), given = t.In({kRows, kWidth});
           RunOn(backend, {.operation = "attention_gradient",
                           .attributes = attributes,
                           .inputs = {d_out, qkv, given, statistics},
                           .outputs = {d_qkv},
                           .samples = 2,
                           .stream = stream});
           outputs.push_back(t.Read("d_qkv", d_qkv));
           return outputs;
         }});
  }
}

Outputs Elementwise(Backend& backend, DType dtype) {
  const Shape shape = {37, 1001};
  Typed t(backend, dtype);
  const Tensor x = t.In(shape, 3.0f), dy = t.In(shape);
  const Tensor gelu = t.Out(shape), dx = t.Out(shape), dropped = t.Out(shape), sum = t.In(shape);
  const Tensor filled = t.Out(shape);
  const auto drop = [&](const Tensor& y) {
    const RandomStream stream = TestStream();
    RunOn(backend,
          {.operation = "dropout",
           .attributes = ToAttributes(DropoutAttributes{.rate = 0.3, .draw = stream.operation}),
           .inputs = {x},
           .outputs = {y},
           .stream = stream});
  };
  RunOn(backend, {.operation = "gelu", .inputs = {x}, .outputs = {gelu}});
  RunOn(backend, {.operation = "gelu_gradient", .inputs = {dy, x}, .outputs = {dx}});
  drop(dropped);
  RunOn(backend, {.operation = "add", .inputs = {x, sum}, .outputs = {sum}});
  backend.Fill(filled, 0.3f);
  Outputs outputs = {t.Read("gelu", gelu), t.Read("dx", dx), t.Read("dropped", dropped),
                     t.Read("sum", sum), t.Read("filled", filled)};
  RunOn(backend, {.operation = "gelu_gradient", .inputs = {dy, x}, .outputs = {dy}});
  drop(x);
  outputs.push_back(t.Read("dropped in place", x));
  outputs.push_back(t.Read("dx in place", dy));
  return outputs;
}

Outputs Embedding(Backend& backend, DType dtype) {
  constexpr int64_t kContext = 50, kRows = 3 * kContext, kWidth = 77, kVocabulary = 30;
  Typed t(backend, dtype);
  const Tensor ids = t.bench().Indices(kRows, kVocabulary), y = t.Out({kRows, kWidth});
  const Tensor d_token = t.bench().Normal({kVocabulary, kWidth});
  const Tensor d_position = t.bench().Normal({kContext, kWidth});
  const Tensor token = t.In({kVocabulary, kWidth}), position = t.In({kContext, kWidth});
  RunOn(backend, {.operation = "embedding",
                  .inputs = {ids, Whole(token), Whole(position)},
                  .outputs = {y},
                  .samples = kRows / kContext});
  RunOn(backend, {.operation = "embedding_weight_gradient",
                  .inputs = {ids, t.In({kRows, kWidth})},
                  .adds = {d_token, d_position},
                  .samples = kRows / kContext});
  return {t.Read("y", y), t.bench().Read("d_token", d_token),
          t.bench().Read("d_position", d_position)};
}

Outputs CrossEntropy(Backend& backend, DType dtype) {
  constexpr int64_t kRows = 40, kVocabulary = 777;
  Typed t(backend, dtype);
  const Tensor logits = t.In({kRows, kVocabulary}, 2.0f), d_logits = t.Out({kRows, kVocabulary});
  const Tensor targets = t.bench().Indices(kRows, kVocabulary);
  Outputs outputs;
  for (const Tensor& gradient : {Tensor(), d_logits, logits}) {  // the last one in place
    const Tensor sums = t.bench().Blank({2}, DType::kF64);
    const Tensor scale = gradient.valid() ? t.bench().From({0.01f}, {1}) : Tensor();
    RunLoss(backend, {logits, targets, sums, scale, gradient});
    outputs.push_back(t.bench().Read("sums", sums));
    if (gradient.valid()) outputs.push_back(t.Read("d_logits", gradient));
  }
  return outputs;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  AddProducts(cases);
  AddLayerNorms(cases);
  AddAttention(cases);
  cases.push_back({"Elementwise", 0.0, Elementwise});
  cases.push_back({"Embedding", 0.0, Embedding});
  cases.push_back({"CrossEntropy", 0.0, CrossEntropy});
  return cases;
}

double ShareOfUnequal(const Outputs& a, const Outputs& b) {
  double unequal = 0, all = 0;
  for (size_t o = 0; o < a.size(); ++o) {
    all += static_cast<double>(a[o].values.size());
    for (size_t i = 0; i < a[o].values.size(); ++i) unequal += a[o].values[i] != b[o].values[i];
  }
  return unequal / all;
}

std::vector<Bfloat16Products> ProductsOfThisMachine() {
  if (cpu::BestBfloat16Products() == Bfloat16Products::kWidened) {
    return {Bfloat16Products::kWidened};
  }
  return {Bfloat16Products::kNative, Bfloat16Products::kWidened};
}

std::unique_ptr<Backend> Make(int threads, Bfloat16Products products) {
  return std::make_unique<cpu::CpuBackend>(BackendOptions{.threads = threads}, products);
}

void ForEveryInstructionSet(const std::function<void(const std::string&)>& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    ASSERT_STREQ(cpu::KernelTarget(), hwy::TargetName(target));
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

TEST(CpuBfloat16, IsFloat32OfTheWidenedInputsRoundedOnEveryInstructionSet) {
  constexpr double kUnequal = 0.01;
  const std::vector<Case> cases = Cases();
  int turn = 0;  // sanitized, every seventh
  ForEveryInstructionSet([&](const std::string& target) {
    const auto plain = MakeCpuBackend(BackendOptions{});
    for (const Case& c : cases) {
      if (kSanitized && turn++ % 7 != 0) continue;
      const Outputs expected = c.run(*plain, DType::kF32);
      for (const Bfloat16Products products : ProductsOfThisMachine()) {
        const Outputs actual = c.run(*Make(1, products), DType::kBF16);
        const std::string where = absl::StrCat(c.name, " on ", target, ", native products ",
                                               products == Bfloat16Products::kNative);
        EXPECT_EQ(Disagreement(actual, expected, c.tolerance), "") << where;
        if (c.tolerance == kPlace) {
          EXPECT_LE(ShareOfUnequal(actual, expected), kUnequal) << where;
        }
      }
    }
  });
}

TEST(CpuBfloat16, GivesTheSameBitsWithAnyNumberOfThreadsAndAgain) {
  for (const Bfloat16Products products : ProductsOfThisMachine()) {
    const auto one = Make(1, products);
    for (const Case& c : Cases()) {
      const Outputs first = c.run(*one, DType::kBF16);
      EXPECT_EQ(Disagreement(c.run(*one, DType::kBF16), first, 0.0), "") << c.name << " again";
      for (const int threads : {2, 3, 4}) {
        if (kSanitized && threads != 3) continue;
        EXPECT_EQ(Disagreement(c.run(*Make(threads, products), DType::kBF16), first, 0.0), "")
            << c.name << ", threads " << threads;
      }
    }
  }
}

// Every BF16 value and what lies around the middle between it and the next one, infinities,
// denormals and NaNs included; lengths with every partial vector.
TEST(CpuBfloat16, ConversionHasTheBitsOfTheScalarOneOnEveryInstructionSet) {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  ForEveryInstructionSet([&](const std::string& target) {
    std::vector<Bfloat16> narrow(values.size());
    std::vector<float> wide(values.size());
    int64_t length = 1;
    for (int64_t i = 0; i < std::ssize(values); i += length, length = length % 50 + 1) {
      length = std::min<int64_t>(length, std::ssize(values) - i);
      cpu::Narrow(&values[i], &narrow[i], length);
      cpu::Widen(&narrow[i], &wide[i], length);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(narrow[i].bits, Bfloat16(values[i]).bits) << target << ", value " << i;
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), uint32_t{narrow[i].bits} << 16) << target;
    }
  });
}

TEST(CpuBfloat16, OptimizersRoundTheNewValueInTheSamePass) {
  const auto backend = Make(2, cpu::BestBfloat16Products());
  for (const bool adam : {false, true}) {
    std::vector<Output> values;
    for (const bool rounds : {false, true}) {
      Bench bench(*backend);
      const Shape shape = {20003};
      const Tensor value = bench.Normal(shape), gradient = bench.Normal(shape);
      const Tensor m = bench.Normal(shape), v = bench.From(std::vector<float>(20003, 0.5f), shape);
      const Tensor compute = rounds ? bench.Blank(shape, DType::kBF16) : Tensor();
      UpdateCall update{.operation = "adamw_update", .adds = {gradient, value, m, v}};
      if (!adam) {
        update = {.operation = "sgd_update",
                  .attributes = ToAttributes(SgdUpdateAttributes{.momentum = 0.9}),
                  .adds = {gradient, value, m}};
      }
      if (rounds) update.adds.push_back(compute);
      UpdateOn(*backend, update, {.learning_rate = 0.1});
      values.push_back(bench.Read("value", value));
      if (!rounds) continue;
      for (int64_t i = 0; i < value.elements(); ++i) {
        ASSERT_EQ(compute.data<Bfloat16>()[i].bits, Bfloat16(value.data<float>()[i]).bits) << i;
      }
    }
    EXPECT_EQ(Disagreement({values[0]}, {values[1]}, 0.0), "");
  }
}

// What the planner counts on: operations work in blocks, not on a float32 copy of an activation.
TEST(CpuBfloat16, WorkspaceDoesNotGrowWithTheRows) {
  for (const Bfloat16Products products : ProductsOfThisMachine()) {
    std::vector<int64_t> peaks;
    for (const int64_t rows : {int64_t{4096}, int64_t{16384}}) {
      constexpr int64_t kWidth = 96;
      const auto backend = Make(1, products);
      Typed t(*backend, DType::kBF16);
      const Tensor x = t.In({rows, kWidth}), y = t.Out({rows, kWidth}), gelu = t.Out(x.shape());
      const Tensor weight = t.In({kWidth, kWidth}), d_weight = t.bench().Normal(weight.shape());
      const Tensor gain = t.bench().Normal({kWidth}), mean = t.bench().Normal({rows});
      RunOn(*backend, {.operation = "linear",
                       .attributes = ToAttributes(LinearAttributes{.gelu = true}),
                       .inputs = {x, Whole(weight)},
                       .outputs = {y, gelu}});
      RunOn(*backend, {.operation = "linear_input_gradient",
                       .attributes = ToAttributes(LinearInputGradientAttributes{.gelu = true}),
                       .inputs = {y, Whole(weight), x},
                       .outputs = {gelu}});
      RunOn(*backend, {.operation = "linear_weight_gradient",
                       .attributes = ToAttributes(LinearWeightGradientAttributes{.bias = true}),
                       .inputs = {y, x},
                       .adds = {d_weight, gain}});
      RunOn(*backend, {.operation = "layer_norm",
                       .inputs = {x, Whole(gain), Whole(gain)},
                       .outputs = {y, mean, mean}});
      RunOn(*backend, {.operation = "add", .inputs = {x, y}, .outputs = {y}});
      ASSERT_TRUE(backend->Synchronize().ok());
      peaks.push_back(
          backend->allocator().Use().current[static_cast<size_t>(MemoryKind::kWorkspace)]);
    }
    EXPECT_EQ(peaks[0], peaks[1]);
    EXPECT_LT(peaks[1], 16384 * 96 * static_cast<int64_t>(sizeof(float)) / 2);
  }
}

TEST(CpuBfloat16, FingerprintTellsHowMatricesAreMultiplied) {
  EXPECT_THAT(Make(1, Bfloat16Products::kWidened)->fingerprint(),
              testing::HasSubstr("BF16 widened"));
  if (cpu::BestBfloat16Products() == Bfloat16Products::kNative) {
    EXPECT_THAT(MakeCpuBackend(BackendOptions{})->fingerprint(), testing::HasSubstr("BF16 native"));
  }
}

}  // namespace
}  // namespace stagecoach::conformance
