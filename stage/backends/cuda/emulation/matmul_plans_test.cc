#include "stage/backends/cuda/matmul_plans.h"

#include "gtest/gtest.h"

namespace stagecoach::cuda {
namespace {

// The mapping to column-major itself is held to the reference by the Linear rows of
// emulated_kernels_test.cc.
TEST(MatmulPlans, InnerSizesOfBothOperandsAgree) {
  for (const MatmulKind kind :
       {MatmulKind::kForward, MatmulKind::kBackwardInput, MatmulKind::kBackwardWeight}) {
    const MatmulProblem p = DescribeMatmul({.kind = kind, .rows = 3, .in = 5, .out = 7});
    EXPECT_EQ(p.transpose_a ? p.a_columns : p.a_rows, p.m);
    EXPECT_EQ(p.transpose_a ? p.a_rows : p.a_columns, p.k);
    EXPECT_EQ(p.transpose_b ? p.b_columns : p.b_rows, p.k);
    EXPECT_EQ(p.transpose_b ? p.b_rows : p.b_columns, p.n);
    EXPECT_EQ(p.beta, kind == MatmulKind::kBackwardWeight ? 1.0f : 0.0f);
  }
}

TEST(MatmulPlans, EveryFieldOfTheShapeIsPartOfTheKey) {
  const MatmulShape base = {.kind = MatmulKind::kForward, .rows = 3, .in = 5, .out = 7};
  MatmulShape kind = base, rows = base, in = base, out = base, bias = base;
  kind.kind = MatmulKind::kBackwardInput;
  rows.rows = in.in = out.out = 9;
  bias.bias = true;
  for (const MatmulShape& other : {kind, rows, in, out, bias}) EXPECT_FALSE(other == base);
}

TEST(MatmulPlans, TheFirstOfferWithAFixedOrderOfAdditionsIsTaken) {
  constexpr size_t kWorkspace = 1000;
  const MatmulCandidate unusable = {.usable = false};
  const MatmulCandidate in_place = {
      .usable = true, .reduction_scheme = kReductionInPlace, .split_k = 4};
  const MatmulCandidate output_type = {
      .usable = true, .reduction_scheme = kReductionOutputType, .split_k = 2};
  const MatmulCandidate large = {.usable = true, .workspace_bytes = 1001};
  const MatmulCandidate staged = {.usable = true,
                                  .reduction_scheme = kReductionComputeType,
                                  .split_k = 4,
                                  .workspace_bytes = 1000};
  const MatmulCandidate plain = {.usable = true};
  EXPECT_EQ(ChooseCandidate({}, kWorkspace), -1);
  EXPECT_EQ(ChooseCandidate({unusable, in_place, output_type, large}, kWorkspace), -1);
  EXPECT_EQ(ChooseCandidate({in_place, staged, plain}, kWorkspace), 1);
  EXPECT_EQ(ChooseCandidate({plain, staged}, kWorkspace), 0);
  EXPECT_EQ(ChooseCandidate({staged, plain}, 10), 1);
}

}  // namespace
}  // namespace stagecoach::cuda
