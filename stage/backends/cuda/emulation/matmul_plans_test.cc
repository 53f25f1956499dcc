#include "stage/backends/cuda/matmul/matmul_plans.h"

#include "absl/hash/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cuda {
namespace {

// The mapping to column-major itself is held to the reference by the Linear rows of
// emulated_kernels_test.cc.
TEST(MatmulPlans, PaddedRowsAreALeadingDimensionOfYAndOfItsGradient) {
  MatmulShape shape{.kind = MatmulKind::kForward, .rows = 6, .in = 5, .out = 9, .out_stride = 16};
  EXPECT_EQ(DescribeMatmul(shape).d_ld, 16);
  EXPECT_EQ(DescribeMatmul(shape).b_ld, 5);
  shape.kind = MatmulKind::kBackwardInput;
  EXPECT_EQ(DescribeMatmul(shape).d_ld, 5);
  EXPECT_EQ(DescribeMatmul(shape).b_ld, 16);
  shape.kind = MatmulKind::kBackwardWeight;
  EXPECT_EQ(DescribeMatmul(shape).d_ld, 5);
  EXPECT_EQ(DescribeMatmul(shape).b_ld, 16);
  EXPECT_EQ(DescribeMatmul(shape).b_rows, 9) << "what lies between rows is never meant";
  const MatmulShape dense{.kind = MatmulKind::kForward, .rows = 6, .in = 5, .out = 9};
  EXPECT_EQ(DescribeMatmul(dense).d_ld, 9);
}

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
  MatmulShape kind = base, rows = base, in = base, out = base, type = base, epilogue = base;
  MatmulShape residual = base, stride = base;
  kind.kind = MatmulKind::kBackwardInput;
  rows.rows = in.in = out.out = 9;
  type.type = MatmulType::kTensorFloat32;
  epilogue.epilogue = MatmulEpilogue::kBias;
  residual.residual = true;
  stride.out_stride = 8;
  for (const MatmulShape& other : {kind, rows, in, out, type, epilogue, residual, stride}) {
    EXPECT_FALSE(other == base);
    EXPECT_NE(absl::HashOf(other), absl::HashOf(base));
  }
}

TEST(MatmulPlans, AResidualIsAddedByTheProductBesideItsBias) {
  MatmulShape shape = {.rows = 3,
                       .in = 5,
                       .out = 16,
                       .type = MatmulType::kBfloat16,
                       .epilogue = MatmulEpilogue::kBias,
                       .residual = true};
  EXPECT_EQ(DescribeMatmul(shape).beta, 1.0f);
  EXPECT_THAT(EpiloguesToTry(shape),
              testing::ElementsAre(MatmulEpilogue::kBias, MatmulEpilogue::kNone));
  shape.epilogue = MatmulEpilogue::kBiasGelu;
  EXPECT_DEATH(DescribeMatmul(shape), "a product with a residual");
}

TEST(MatmulPlans, TypesAreTheJobsAndWeightGradientsAreFloat32) {
  for (const MatmulKind kind :
       {MatmulKind::kForward, MatmulKind::kBackwardInput, MatmulKind::kBackwardWeight}) {
    MatmulShape shape = {.kind = kind, .rows = 3, .in = 5, .out = 7};
    for (const MatmulType type : {MatmulType::kFloat32, MatmulType::kTensorFloat32}) {
      shape.type = type;
      const MatmulProblem p = DescribeMatmul(shape);
      EXPECT_FALSE(p.bf16_operands || p.bf16_result);
      EXPECT_EQ(p.tensor_float, type == MatmulType::kTensorFloat32);
    }
    shape.type = MatmulType::kBfloat16;
    const MatmulProblem p = DescribeMatmul(shape);
    EXPECT_TRUE(p.bf16_operands);
    EXPECT_FALSE(p.tensor_float);
    EXPECT_EQ(p.bf16_result, kind != MatmulKind::kBackwardWeight);
  }
}

TEST(MatmulPlans, EpiloguesAreTriedFromTheMostToNone) {
  using E = MatmulEpilogue;
  using testing::ElementsAre;
  EXPECT_EQ(ForwardEpilogue(true, true), E::kBiasGelu);
  EXPECT_EQ(ForwardEpilogue(false, true), E::kGelu);
  EXPECT_EQ(ForwardEpilogue(true, false), E::kBias);
  EXPECT_EQ(ForwardEpilogue(false, false), E::kNone);
  MatmulShape shape = {
      .rows = 3, .in = 7, .out = 16, .type = MatmulType::kBfloat16, .epilogue = E::kBiasGelu};
  EXPECT_THAT(EpiloguesToTry(shape), ElementsAre(E::kBiasGelu, E::kBias, E::kNone));
  shape.epilogue = E::kGelu;
  EXPECT_THAT(EpiloguesToTry(shape), ElementsAre(E::kGelu, E::kNone));
  shape.epilogue = E::kNone;
  EXPECT_THAT(EpiloguesToTry(shape), ElementsAre(E::kNone));
  // The second matrix has rows of 12: not divisible by 8.
  shape.epilogue = E::kBiasGelu;
  shape.out = 12;
  EXPECT_THAT(EpiloguesToTry(shape), ElementsAre(E::kBias, E::kNone));
  // float32 is held to the reference's GELU.
  shape.out = 16;
  shape.type = MatmulType::kTensorFloat32;
  EXPECT_THAT(EpiloguesToTry(shape), ElementsAre(E::kBias, E::kNone));
  // dx[rows, in]: what counts is in.
  MatmulShape backward = {.kind = MatmulKind::kBackwardInput,
                          .rows = 3,
                          .in = 24,
                          .out = 7,
                          .type = MatmulType::kBfloat16,
                          .epilogue = E::kGeluGradient};
  EXPECT_THAT(EpiloguesToTry(backward), ElementsAre(E::kGeluGradient, E::kNone));
  backward.in = 23;
  EXPECT_THAT(EpiloguesToTry(backward), ElementsAre(E::kNone));
}

TEST(MatmulPlans, TheFirstOfferWithAFixedOrderOfAdditionsIsTaken) {
  constexpr size_t kWorkspace = 1000;
  const MatmulCandidate unusable = {.usable = false};
  const MatmulCandidate in_place = {
      .usable = true, .algorithm = {.split_k = 4, .reduction_scheme = kReductionInPlace}};
  const MatmulCandidate output_type = {
      .usable = true, .algorithm = {.split_k = 2, .reduction_scheme = kReductionOutputType}};
  const MatmulCandidate large = {.usable = true, .workspace_bytes = 1001};
  const MatmulCandidate staged = {
      .usable = true,
      .algorithm = {.split_k = 4, .reduction_scheme = kReductionComputeType},
      .workspace_bytes = 1000};
  const MatmulCandidate plain = {.usable = true};
  EXPECT_EQ(ChooseCandidate({}, kWorkspace), -1);
  EXPECT_EQ(ChooseCandidate({unusable, in_place, output_type, large}, kWorkspace), -1);
  EXPECT_EQ(ChooseCandidate({in_place, staged, plain}, kWorkspace), 1);
  EXPECT_EQ(ChooseCandidate({plain, staged}, kWorkspace), 0);
  EXPECT_EQ(ChooseCandidate({staged, plain}, 10), 1);
}

TEST(MatmulPlans, AlgorithmsHaveTheTextThatReportsShow) {
  EXPECT_EQ(AlgorithmText({.id = 66, .tile = 20, .stages = 14, .cluster = 3}),
            "66 tile 20 stages 14 split-k 1 cluster 3");
}

}  // namespace
}  // namespace stagecoach::cuda
