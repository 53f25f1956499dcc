#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "base/numbers/random.h"
#include "stage/cell/initial_value_testing.h"

namespace stagecoach {
namespace {

TEST(InitialValueTest, FollowsTheStatedStream) {
  ParameterSpec spec{
      "model/0003/mlp.up.weight", Shape({4, 8}), ParameterSpec::Init::kNormal, 0.02, 2, true};
  const std::vector<float> values = InitialValue(spec, 5, 3);
  ASSERT_EQ(values.size(), 32u);
  const RandomStream stream{5, 0, 0xffffffff, 3, 0x8000 | 2};
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], static_cast<float>(0.02 * RandomNormal(stream, i)));
  }
  EXPECT_NE(InitialValue(spec, 6, 3), values);
  EXPECT_NE(InitialValue(spec, 5, 4), values);
  spec.index = 1;
  EXPECT_NE(InitialValue(spec, 5, 3), values);
}

TEST(InitialValueTest, IsTheSameHoweverManyThreadsMakeIt) {
  const ParameterSpec spec = {.name = "model/0003/weight",
                              .shape = {1001, 1003},  // parts of unequal size
                              .init = ParameterSpec::Init::kNormal,
                              .init_stddev = 0.02,
                              .index = 1};
  const std::vector<float> values = InitialValue(spec, 5, 3);
  const RandomStream stream = {5, 0, 0xffffffff, 3, 0x8001};
  ASSERT_EQ(values.size(), 1001u * 1003u);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(0.02 * RandomNormal(stream, i))) << i;
  }
}

TEST(InitialValueTest, IsTheSamePieceByPiece) {
  const ParameterSpec spec = {.name = "model/0003/weight",
                              .shape = {300, 301},
                              .init = ParameterSpec::Init::kNormal,
                              .init_stddev = 0.02,
                              .index = 1};
  std::vector<float> values(300 * 301);
  constexpr size_t kPiece = 70001;  // more than a thread's, and odd: two elements share a draw
  SetInitialValues(spec, 5, 3, kPiece, std::span(values).subspan(kPiece));
  SetInitialValues(spec, 5, 3, 0, std::span(values).first(kPiece));
  EXPECT_EQ(values, InitialValue(spec, 5, 3));
}

TEST(InitialValueTest, NormalHasItsDeviationAndTheRestIsConstant) {
  ParameterSpec spec{"w", Shape({100, 100}), ParameterSpec::Init::kNormal, 0.5, 0, true};
  double sum = 0.0, squares = 0.0;
  for (float v : InitialValue(spec, 1, 0)) {
    sum += v;
    squares += double{v} * v;
  }
  EXPECT_NEAR(sum / 1e4, 0.0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / 1e4), 0.5, 0.015);
  spec.init = ParameterSpec::Init::kOnes;
  EXPECT_THAT(InitialValue(spec, 1, 0), testing::Each(1.0f));
  spec.init = ParameterSpec::Init::kZeros;
  EXPECT_THAT(InitialValue(spec, 1, 0), testing::Each(0.0f));
}

}  // namespace
}  // namespace stagecoach
