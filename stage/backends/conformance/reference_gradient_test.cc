// The reference's backward operations against finite differences of its forward ones: the rows hold
// every back end to the reference, these tests hold the reference to calculus.
#include <cmath>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

using Values = std::vector<float>;

class ReferenceGradient : public testing::Test {
 protected:
  // d/dx[i] of f by central differences, compared with gradient[i] for every i.
  static void ExpectGradient(Values x, const Values& gradient,
                             const std::function<double(const Values&)>& f) {
    constexpr float kStep = 1e-2f;
    ASSERT_EQ(x.size(), gradient.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const float before = x[i];
      const float above = before + kStep, below = before - kStep;
      x[i] = above;
      const double high = f(x);
      x[i] = below;
      const double low = f(x);
      x[i] = before;
      const double slope = (high - low) / (double{above} - below);
      EXPECT_NEAR(gradient[i], slope, 2e-3 * std::max(1.0, std::abs(slope))) << "element " << i;
    }
  }
  Values Read(const Tensor& tensor) {
    const Output output = bench_.Read("", tensor);
    return Values(output.values.begin(), output.values.end());
  }
  // sum(weights * outputs): a scalar whose gradient with respect to the outputs is weights.
  double Weighted(const Tensor& output, const Values& weights) {
    const Values values = Read(output);
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += double{weights[i]} * values[i];
    return sum;
  }

  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend(BackendOptions{});
  Bench bench_{*backend_};
};

TEST_F(ReferenceGradient, Gelu) {
  const Tensor x = bench_.Normal({40}, 2.0f), dy = bench_.Normal({40}), dx = bench_.Blank({40});
  backend_->GeluBackward({.dy = dy, .x = x, .dx = dx});
  ExpectGradient(Read(x), Read(dx), [&](const Values& values) {
    const Tensor y = bench_.Blank({40});
    backend_->GeluForward({.x = bench_.From(values, {40}), .y = y});
    return Weighted(y, Read(dy));
  });
}

TEST_F(ReferenceGradient, LayerNorm) {
  const int64_t rows = 3, width = 7;
  const Tensor x = bench_.Normal({rows, width}), dy = bench_.Normal({rows, width});
  const Tensor weight = bench_.Normal({width}), bias = bench_.Normal({width});
  const Values zeros(width, 0.0f);
  const auto forward = [&](const Tensor& at_x, const Tensor& at_weight, const Tensor& at_bias) {
    LayerNormForwardArgs args = {.x = at_x,
                                 .weight = at_weight,
                                 .bias = at_bias,
                                 .y = bench_.Blank({rows, width}),
                                 .mean = bench_.Blank({rows}),
                                 .rstd = bench_.Blank({rows})};
    backend_->LayerNormForward(args);
    return args;
  };
  const LayerNormForwardArgs kept = forward(x, weight, bias);
  const Tensor dx = bench_.Blank({rows, width});
  const Tensor d_weight = bench_.From(zeros, {width}), d_bias = bench_.From(zeros, {width});
  backend_->LayerNormBackwardInput(
      {.dy = dy, .x = x, .weight = weight, .mean = kept.mean, .rstd = kept.rstd, .dx = dx});
  backend_->LayerNormBackwardWeight({.dy = dy,
                                     .x = x,
                                     .mean = kept.mean,
                                     .rstd = kept.rstd,
                                     .d_weight = d_weight,
                                     .d_bias = d_bias});
  ExpectGradient(Read(x), Read(dx), [&](const Values& values) {
    return Weighted(forward(bench_.From(values, {rows, width}), weight, bias).y, Read(dy));
  });
  ExpectGradient(Read(weight), Read(d_weight), [&](const Values& values) {
    return Weighted(forward(x, bench_.From(values, {width}), bias).y, Read(dy));
  });
  ExpectGradient(Read(bias), Read(d_bias), [&](const Values& values) {
    return Weighted(forward(x, weight, bench_.From(values, {width})).y, Read(dy));
  });
}

TEST_F(ReferenceGradient, AttentionWithAndWithoutDropout) {
  const int64_t n = 2 * 5, width = 2 * 3;
  for (const double dropout : {0.0, 0.3}) {
    const AttentionShape shape = {.sequences = 2,
                                  .context = 5,
                                  .heads = 2,
                                  .width = width,
                                  .dropout = dropout,
                                  .stream = TestStream()};
    const Tensor qkv = bench_.Normal({n, 3 * width}), d_out = bench_.Normal({n, width});
    const auto forward = [&](const Tensor& at) {
      AttentionForwardArgs args = {.shape = shape,
                                   .qkv = at,
                                   .out = bench_.Blank({n, width}),
                                   .log_sum_exp = bench_.Blank({2, 2, 5})};
      backend_->AttentionForward(args);
      return args;
    };
    const AttentionForwardArgs kept = forward(qkv);
    const Tensor d_qkv = bench_.Blank({n, 3 * width});
    backend_->AttentionBackward({.shape = shape,
                                 .d_out = d_out,
                                 .qkv = qkv,
                                 .out = kept.out,
                                 .log_sum_exp = kept.log_sum_exp,
                                 .d_qkv = d_qkv});
    ExpectGradient(Read(qkv), Read(d_qkv), [&](const Values& values) {
      return Weighted(forward(bench_.From(values, {n, 3 * width})).out, Read(d_out));
    });
  }
}

TEST_F(ReferenceGradient, CrossEntropy) {
  const int64_t n = 3, vocabulary = 7;
  const Tensor logits = bench_.Normal({n, vocabulary}), targets = bench_.Indices(n, vocabulary);
  const Tensor d_logits = bench_.Blank({n, vocabulary}), loss = bench_.Blank({1}, DType::kF64);
  backend_->CrossEntropy(
      {.logits = logits, .targets = targets, .scale = 0.5f, .loss = loss, .d_logits = d_logits});
  ExpectGradient(Read(logits), Read(d_logits), [&](const Values& values) {
    backend_->CrossEntropy({.logits = bench_.From(values, {n, vocabulary}),
                            .targets = targets,
                            .scale = 0.5f,
                            .loss = loss});
    return 0.5 * bench_.Read("loss", loss).values[0];
  });
}

TEST_F(ReferenceGradient, LinearWithGelu) {
  const int64_t n = 4, in = 5, out = 3;
  const Tensor pre = bench_.Normal({n, in}), weight = bench_.Normal({out, in});
  const Tensor dy = bench_.Normal({n, out}), dx = bench_.Blank({n, in});
  const Tensor activated = bench_.Blank({n, in});
  const Tensor d_weight = bench_.From(Values(out * in, 0.0f), {out, in});
  const auto forward = [&](const Tensor& at_pre, const Tensor& at_weight) {
    backend_->GeluForward({.x = at_pre, .y = activated});
    const Tensor y = bench_.Blank({n, out});
    backend_->LinearForward({.x = activated, .weight = at_weight, .y = y});
    return y;
  };
  forward(pre, weight);
  backend_->LinearBackwardInput({.dy = dy, .weight = weight, .gelu_input = pre, .dx = dx});
  backend_->LinearBackwardWeight({.dy = dy, .x = activated, .d_weight = d_weight});
  ExpectGradient(Read(pre), Read(dx), [&](const Values& values) {
    return Weighted(forward(bench_.From(values, {n, in}), weight), Read(dy));
  });
  ExpectGradient(Read(weight), Read(d_weight), [&](const Values& values) {
    return Weighted(forward(pre, bench_.From(values, {out, in})), Read(dy));
  });
}

}  // namespace
}  // namespace stagecoach::conformance
