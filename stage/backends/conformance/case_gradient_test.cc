// Every operation's gradient rule and the reference's kernels of it against finite differences of
// its forward, for every case: the rows hold every back end to the reference, these hold the
// reference to calculus.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/conformance/case_table.h"
#include "stage/backends/conformance/without_kernels.h"

namespace stagecoach::conformance {
namespace {

constexpr float kStep = 1e-2f;
constexpr int64_t kMostElements = 60;  // of an operand; of larger ones some are tried

double RootMeanSquare(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

class CaseGradient : public testing::TestWithParam<OperationCase> {
 protected:
  // sum(gradients * outputs): a scalar whose gradient with respect to the outputs is `gradients`.
  double Scalar(CaseTable& table) {
    for (const Call& call : calls_.forward) table.Run(call);
    double sum = 0;
    for (size_t i = 0; i < calls_.outputs.size(); ++i) {
      const std::vector<float> y = table.Values(calls_.outputs[i]);
      const std::vector<float> dy = table.Values(calls_.output_gradients[i]);
      for (size_t j = 0; j < y.size(); ++j) sum += double{dy[j]} * y[j];
    }
    return sum;
  }

  double Slope(CaseTable& table, ValueId operand, std::vector<float> values, size_t element) {
    const float before = values[element], above = before + kStep, below = before - kStep;
    values[element] = above;
    table.Set(operand, values);
    const double high = Scalar(table);
    values[element] = below;
    table.Set(operand, values);
    return (high - Scalar(table)) / (double{above} - below);
  }

  const std::unique_ptr<Backend> reference_ = MakeReferenceBackend(BackendOptions{});
  Bench bench_{*reference_};
  const CaseCalls calls_ = CallsOfCase(GetParam());
};

TEST_P(CaseGradient, IsWhatFiniteDifferencesSay) {
  const std::string missing = MissingKernel(*reference_, calls_);
  if (!missing.empty()) GTEST_SKIP() << "the reference has no kernel for " << missing;
  CaseTable table(bench_, calls_);
  table.SetGiven();
  for (const Call& call : calls_.All()) table.Run(call);
  for (size_t i = 0; i < calls_.operands.size(); ++i) {
    const ValueId operand = calls_.operands[i], gradient = calls_.operand_gradients[i];
    if (!gradient.valid()) continue;
    std::vector<float> derived = table.Values(gradient);
    if (GetParam().call.inputs[i].type.leading == Leading::kOne) {
      const std::vector<float> before = FillOf(calls_, gradient);  // was added to
      for (size_t j = 0; j < derived.size(); ++j) derived[j] -= before[j];
    }
    const std::vector<float> values = table.Values(operand);
    const double scale = RootMeanSquare(derived);
    const size_t stride = std::max<size_t>(1, values.size() / kMostElements);
    for (size_t j = 0; j < values.size(); j += stride) {
      const double slope = Slope(table, operand, values, j);
      EXPECT_NEAR(derived[j], slope, 4e-3 * std::max(scale, std::abs(slope)))
          << "operand " << i << " element " << j;
    }
    table.Set(operand, values);
  }
}

std::vector<OperationCase> Differentiable() {
  std::vector<OperationCase> cases = AllCases();
  std::erase_if(cases, [](const OperationCase& of) { return !of.call.differentiable; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Reference, CaseGradient, testing::ValuesIn(Differentiable()),
                         [](const auto& info) { return info.param.name(); });

TEST(ReferenceKernels, AreMissingForTheseOnly) {
  const auto reference = MakeReferenceBackend(BackendOptions{});
  EXPECT_THAT(MissingKernels(*reference), testing::ElementsAreArray(OperationsWithoutKernels()));
}

}  // namespace
}  // namespace stagecoach::conformance
