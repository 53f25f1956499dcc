// The reference's gradients that no case of an operation reaches (case_gradient_test.cc) against
// finite differences: of the loss, and of a GELU within a product.
#include <cmath>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "operations/linear.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/loss_testing.h"
#include "stage/backends/operation_testing.h"

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

TEST_F(ReferenceGradient, CrossEntropy) {
  const int64_t n = 3, vocabulary = 7;
  const Tensor logits = bench_.Normal({n, vocabulary}), targets = bench_.Indices(n, vocabulary);
  const Tensor d_logits = bench_.Blank({n, vocabulary}), sums = bench_.Blank({2}, DType::kF64);
  RunLoss(*backend_, {logits, targets, sums, bench_.From({0.5f}, {1}), d_logits});
  ExpectGradient(Read(logits), Read(d_logits), [&](const Values& values) {
    RunLoss(*backend_,
            {.logits = bench_.From(values, {n, vocabulary}), .targets = targets, .sums = sums});
    return 0.5 * bench_.Read("sums", sums).values[0];
  });
}

TEST_F(ReferenceGradient, LinearWithGelu) {
  const int64_t n = 4, in = 5, out = 3;
  const Tensor pre = bench_.Normal({n, in}), weight = bench_.Normal({out, in});
  const Tensor dy = bench_.Normal({n, out}), dx = bench_.Blank({n, in});
  const Tensor activated = bench_.Blank({n, in});
  const Tensor d_weight = bench_.From(Values(out * in, 0.0f), {out, in});
  const auto forward = [&](const Tensor& at_pre, const Tensor& at_weight) {
    RunOn(*backend_, {.operation = "gelu", .inputs = {at_pre}, .outputs = {activated}});
    const Tensor y = bench_.Blank({n, out});
    RunOn(*backend_,
          {.operation = "linear", .inputs = {activated, Whole(at_weight)}, .outputs = {y}});
    return y;
  };
  forward(pre, weight);
  RunOn(*backend_, {.operation = "linear_input_gradient",
                    .attributes = ToAttributes(LinearInputGradientAttributes{.gelu = true}),
                    .inputs = {dy, Whole(weight), pre},
                    .outputs = {dx}});
  RunOn(*backend_,
        {.operation = "linear_weight_gradient", .inputs = {dy, activated}, .adds = {d_weight}});
  ExpectGradient(Read(pre), Read(dx), [&](const Values& values) {
    return Weighted(forward(bench_.From(values, {n, in}), weight), Read(dy));
  });
  ExpectGradient(Read(weight), Read(d_weight), [&](const Values& values) {
    return Weighted(forward(pre, bench_.From(values, {out, in})), Read(dy));
  });
}

}  // namespace
}  // namespace stagecoach::conformance
