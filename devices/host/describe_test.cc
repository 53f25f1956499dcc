#include "devices/host/describe.h"

#include <gtest/gtest.h>

#include "operations/attention/attention.h"
#include "operations/attention/attention_scratch.h"
#include "operations/attention/cached_attention.h"
#include "operations/attributes.h"
#include "operations/linear.h"
#include "operations/norms/rms_norm.h"

namespace stagecoach {
namespace {

const ValueType kRows = ActivationType({8, 4000});

TEST(DescribeOnHost, ElementwiseWorkTakesPiecesOfBfloat16) {
  const Call call = {.operation = "add"};
  const CallTypes types = {{kRows, kRows}, {kRows}, {}};
  const CallDescription narrow = DescribeOnHost({}, call, types, 3, DType::kBF16);
  EXPECT_EQ(narrow.room, 66048) << "columns of 64 rows, as three rows of 4,000 take less";
  EXPECT_LT(DescribeOnHost({}, call, types, 3, DType::kF32).room, 2048);
  EXPECT_EQ(narrow.shared + narrow.kept, 0);
  EXPECT_EQ(narrow.way, "");
}

TEST(DescribeOnHost, AttentionTakesAUnitOfEachThread) {
  constexpr int64_t kContext = 40, kHeadWidth = 16;
  const Call call = {.operation = "attention",
                     .attributes = ToAttributes(AttentionAttributes{.heads = 2})};
  const CallTypes types = {{ActivationType({kContext, 96})}, {}, {}};
  for (const int64_t samples : {1, 7}) {
    EXPECT_EQ(DescribeOnHost({}, call, types, samples, DType::kF32).room,
              4 * AttentionScratch::Forward(kContext, kHeadWidth));
  }
}

TEST(DescribeOnHost, AttentionToAPoolTakesTheHistoryOfARow) {
  const auto ids = [](Shape shape) {
    return ValueType{Element::kIds, Leading::kSamples, std::move(shape)};
  };
  const ValueType pool = WeightType(Element::kActivation, {50, 64});
  const Call call = {.operation = "cached_attention",
                     .attributes = ToAttributes(CachedAttentionAttributes{.heads = 4})};
  const CallTypes types = {{ActivationType({3, 192}), ids({3}), ids({3}), ids({3, 1000})},
                           {ActivationType({3, 64})},
                           {pool, pool}};
  EXPECT_EQ(DescribeOnHost({}, call, types, 5, DType::kF32).room,
            4 * AttentionScratch::Cached(1000, 16));
}

TEST(DescribeOnHost, WeightsOfLinearMapsMayStayPackedIfTheyNeverChange) {
  const Call call = {.operation = "linear", .attributes = ToAttributes(LinearAttributes{})};
  const CallTypes types = {{ActivationType({8, 100}), WeightType(Element::kActivation, {200, 100})},
                           {ActivationType({8, 200})},
                           {}};
  const CallDescription described = DescribeOnHost({}, call, types, 3, DType::kF32);
  EXPECT_EQ(described.kept, 0) << "of a training";
  EXPECT_EQ(described.kept_constant, 4 * 128 * 256) << "in whole blocks of 64";
  EXPECT_EQ(DescribeOnHost({}, call, types, 3, DType::kBF16).kept_constant, 0);
}

// Equal to the larger of its parts, whose kernels may run one after the other.
TEST(DescribeOnHost, AJointGradientTakesWhatItsPartsTake) {
  const ValueType weight = WeightType(Element::kFloat32, {4000});
  const ValueType rstd{Element::kFloat32, Leading::kSamples, {8}};
  const CallTypes types = {{kRows, kRows, weight, rstd}, {kRows}, {weight}};
  const Call call = {.operation = "rms_norm_gradient",
                     .attributes = ToAttributes(RmsNormGradientAttributes{})};
  const Call part = {.operation = "rms_norm_input_gradient", .attributes = call.attributes};
  EXPECT_EQ(DescribeOnHost({}, call, types, 2, DType::kBF16).room,
            DescribeOnHost({}, part, {types.inputs, types.outputs, {}}, 2, DType::kBF16).room);
}

TEST(DescribeOnHost, UpdatesThatCompareSizesTakeTwoSumsForEachBlock) {
  const ValueType weight = WeightType(Element::kFloat32, {3, 16384});
  const CallTypes types = {{}, {}, {weight, weight, weight, weight}};
  EXPECT_EQ(DescribeOnHost({}, {.operation = "lamb_update"}, types, 0, DType::kF32).shared,
            2 * 8 * 4);
  EXPECT_EQ(DescribeOnHost({}, {.operation = "adamw_update"}, types, 0, DType::kF32).shared, 0);
  EXPECT_EQ(DescribeNormsOnHost(3 * 16384).shared, 2 * 8 * 4);
}

}  // namespace
}  // namespace stagecoach
