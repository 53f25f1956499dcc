// Types of what Llamas and Qwens are made of, and the words of what is refused.
#include <cmath>
#include <string>
#include <vector>

#include "base/threads/progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/attention/add_sinusoids.h"
#include "operations/attention/attention.h"
#include "operations/attention/cached_attention.h"
#include "operations/attention/cross_attention.h"
#include "operations/attention/head_norm.h"
#include "operations/attention/packed_heads.h"
#include "operations/attention/rotary.h"
#include "operations/call_types.h"
#include "operations/catalogue.h"
#include "operations/norms/rms_norm.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ValueType kRow = ActivationType({8, 16});
// 4 query heads, 2 key heads and 2 value heads of 6.
const ValueType kGrouped = ActivationType({8, 48});
const ValueType kLength{Element::kIds, Leading::kSamples, {}};
const ValueType kStarts{Element::kIds, Leading::kSamples, {8}};

std::string WhyNot(const std::string& operation, const Attributes& attributes,
                   const std::vector<ValueType>& inputs, const std::vector<ValueType>& adds = {}) {
  const auto types = OperationNamed(operation).Types(attributes, inputs, adds);
  EXPECT_EQ(types.status().code(), absl::StatusCode::kInvalidArgument) << operation;
  return std::string(types.status().message());
}

std::vector<ValueType> TypesOrDie(const std::string& operation, const Attributes& attributes,
                                  const std::vector<ValueType>& inputs) {
  const auto types = OperationNamed(operation).Types(attributes, inputs, {});
  CHECK_OK(types.status());
  return *types;
}

TEST(RmsNormTypes, AreARowAndOneStatistic) {
  const ValueType weight = WeightType(Element::kFloat32, {16});
  const ValueType rstd{Element::kFloat32, Leading::kSamples, {8}};
  EXPECT_THAT(TypesOrDie("rms_norm", {}, {kRow, weight}), ElementsAre(kRow, rstd));
  EXPECT_EQ(WhyNot("rms_norm", {}, {kRow, WeightType(Element::kActivation, {16})}),
            "weight is activation[16]; must be float32[16]");
  EXPECT_EQ(
      WhyNot("rms_norm_input_gradient", ToAttributes(RmsNormGradientAttributes{.residual = true}),
             {kRow, kRow, weight, rstd}),
      "rms_norm_input_gradient has 4 operands; it takes 5: dy, x, weight, rstd, residual");
  Attributes epsilon;
  epsilon.Set("epsilon", 0.0);
  EXPECT_EQ(WhyNot("rms_norm", epsilon, {kRow, weight}),
            "attribute epsilon: 0; must be a number in [1e-12, 1]");
}

TEST(GroupedAttentionTypes, FollowTheHeads) {
  const Attributes grouped = ToAttributes(AttentionAttributes{.heads = 4, .key_heads = 2});
  const std::vector<ValueType> types = TypesOrDie("attention", grouped, {kGrouped});
  EXPECT_THAT(types, ElementsAre(ActivationType({8, 24}),
                                 ValueType{Element::kFloat32, Leading::kSamples, {4, 8}}));
  EXPECT_EQ(TypesOrDie("attention_gradient", grouped, {types[0], kGrouped, types[0], types[1]}),
            std::vector<ValueType>{kGrouped});
  EXPECT_EQ(WhyNot("attention", ToAttributes(AttentionAttributes{.heads = 4, .key_heads = 3}),
                   {kGrouped}),
            "key_heads is 3; must divide the 4 heads");
  EXPECT_EQ(WhyNot("attention", grouped, {ActivationType({8, 50})}),
            "qkv is activation[n, 8, 50]; must be [context, (4 + 2 * 2) * head_width]");
}

TEST(AttentionTypes, TakeLengthsOrTheFirstRowsOfDocuments) {
  const Attributes causal = ToAttributes(AttentionAttributes{.heads = 4, .key_heads = 2});
  const Attributes full =
      ToAttributes(AttentionAttributes{.heads = 4, .key_heads = 2, .full = true});
  const std::vector<ValueType> types = TypesOrDie("attention", causal, {kGrouped});
  for (const bool is_full : {false, true}) {
    const Attributes& attributes = is_full ? full : causal;
    const ValueType& keys = is_full ? kLength : kStarts;
    EXPECT_EQ(TypesOrDie("attention", attributes, {kGrouped, keys}), types);
    EXPECT_EQ(TypesOrDie("attention_gradient", attributes,
                         {types[0], kGrouped, types[0], types[1], keys}),
              std::vector<ValueType>{kGrouped});
    EXPECT_EQ(OperationNamed("attention").RowsOfTable(attributes, {{kGrouped, keys}, types, {}}),
              is_full ? 9 : 8);
  }
  EXPECT_EQ(OperationNamed("attention").RowsOfTable(full, {{kGrouped}, types, {}}), std::nullopt);
  EXPECT_EQ(WhyNot("attention", full, {kGrouped, kStarts}), "keys is ids[n, 8]; must be ids[n]");
  EXPECT_EQ(WhyNot("attention", causal, {kGrouped, kLength}), "keys is ids[n]; must be ids[n, 8]");
  EXPECT_EQ(WhyNot("attention_gradient", full, {types[0], kGrouped, types[0], types[1], kStarts}),
            "keys is ids[n, 8]; must be ids[n]");
  EXPECT_EQ(WhyNot("attention", full, {kGrouped, kLength, kLength}),
            "attention has 3 operands; it takes 2: qkv, keys");
}

TEST(CrossAttentionTypes, FollowRowsAndColumns) {
  const Attributes heads = ToAttributes(CrossAttentionAttributes{.heads = 4, .key_heads = 2});
  const ValueType q = ActivationType({8, 24}), kv = ActivationType({5, 24});
  const std::vector<ValueType> types = TypesOrDie("cross_attention", heads, {q, kv, kLength});
  EXPECT_THAT(types, ElementsAre(q, ValueType{Element::kFloat32, Leading::kSamples, {4, 8}}));
  EXPECT_THAT(
      TypesOrDie("cross_attention_gradient", heads, {q, q, kv, kLength, types[0], types[1]}),
      ElementsAre(q, kv));
  EXPECT_EQ(OperationNamed("cross_attention").RowsOfTable(heads, {{q, kv, kLength}, types, {}}), 6);
  EXPECT_EQ(WhyNot("cross_attention", heads, {q, ActivationType({5, 36}), kLength}),
            "kv is activation[n, 5, 36]; must be [columns, 2 * 2 * 6]");
  EXPECT_EQ(WhyNot("cross_attention", heads, {ActivationType({8, 26}), kv, kLength}),
            "q is activation[n, 8, 26]; must be [rows, 4 * head_width]");
  EXPECT_EQ(WhyNot("cross_attention", heads, {q, kv, kStarts}),
            "keys is ids[n, 8]; must be ids[n]");
  EXPECT_EQ(
      WhyNot("cross_attention", ToAttributes(CrossAttentionAttributes{.heads = 4, .key_heads = 3}),
             {q, kv, kLength}),
      "key_heads is 3; must divide the 4 heads");
}

TEST(CrossAttentionCost, IsThatOfFullAttentionWithAsManyColumns) {
  const Attributes cross = ToAttributes(CrossAttentionAttributes{.heads = 2, .dropout = 0.1});
  const Attributes self =
      ToAttributes(AttentionAttributes{.heads = 2, .dropout = 0.1, .full = true});
  const ValueType q = ActivationType({8, 12}), kv = ActivationType({8, 24}),
                  qkv = ActivationType({8, 36});
  const auto cost = [](const char* operation, const Attributes& attributes,
                       const std::vector<ValueType>& inputs) {
    return OperationNamed(operation).CostOf(
        attributes, {inputs, TypesOrDie(operation, attributes, inputs), {}}, 3);
  };
  const Cost one = cost("cross_attention", cross, {q, kv, kLength});
  const Cost other = cost("attention", self, {qkv});
  EXPECT_EQ(one.products, other.products);
  EXPECT_EQ(one.flops, other.flops);
  EXPECT_EQ(cost("attention", self, {qkv, kLength}).flops, other.flops);
}

TEST(GroupedAttentionCost, IsThatOfAllItsQueryHeads) {
  const auto cost = [](const AttentionAttributes& attributes, const ValueType& qkv) {
    const Attributes given = ToAttributes(attributes);
    const CallTypes types{{qkv}, TypesOrDie("attention", given, {qkv}), {}};
    return OperationNamed("attention").CostOf(given, types, 1);
  };
  const Cost grouped = cost({.heads = 4, .key_heads = 1}, ActivationType({8, 36}));
  const Cost full = cost({.heads = 4}, ActivationType({8, 72}));
  EXPECT_EQ(grouped.products, full.products);
  EXPECT_EQ(grouped.flops, full.flops);
}

const ValueType kHistory{Element::kIds, Leading::kSamples, {8, 5}};
const ValueType kPool = WeightType(Element::kActivation, {20, 12});

TEST(CachedAttentionTypes, FollowTheRowsTheHistoryAndThePool) {
  const Attributes heads = ToAttributes(CachedAttentionAttributes{.heads = 4, .key_heads = 2});
  const std::vector<ValueType> inputs = {kGrouped, kStarts, kStarts, kHistory};
  const auto types =
      OperationNamed("cached_attention").Types(heads, inputs, std::vector{kPool, kPool});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_THAT(*types, ElementsAre(ActivationType({8, 24})));
  const CallTypes all{inputs, *types, {kPool, kPool}};
  EXPECT_EQ(OperationNamed("cached_attention").RowsOfTable(heads, all), std::nullopt);
  const auto why = [&](const ValueType& places, const ValueType& history, const ValueType& keys,
                       const ValueType& values) {
    return WhyNot("cached_attention", heads, {kGrouped, places, kStarts, history}, {keys, values});
  };
  EXPECT_EQ(why(kLength, kHistory, kPool, kPool), "places is ids[n]; must be ids[n, 8]");
  EXPECT_EQ(why(kStarts, kStarts, kPool, kPool),
            "history is ids[n, 8]; must be ids[n, rows, context]");
  EXPECT_EQ(why(kStarts, {Element::kIds, Leading::kSamples, {7, 5}}, kPool, kPool),
            "history is ids[n, 7, 5]; must be ids[n, 8, 5]");
  const ValueType none = WeightType(Element::kActivation, {0, 12});
  EXPECT_EQ(why(kStarts, kHistory, none, none),
            "keys is activation[0, 12]; must be an activation that exists once, [pool, 12] with a "
            "pool of 1 row or more");
  EXPECT_EQ(why(kStarts, kHistory, kPool, WeightType(Element::kActivation, {21, 12})),
            "values is activation[21, 12]; must be activation[20, 12]");
  EXPECT_EQ(WhyNot("cached_attention", heads, inputs),
            "cached_attention has 0 operands; it takes 2: keys, values");
}

TEST(CachedAttentionTypes, TakeANamedNumberOfRows) {
  const Extent rows{8, Length::kTarget};
  const auto ids = [](Shape shape) {
    return ValueType{Element::kIds, Leading::kSamples, std::move(shape)};
  };
  const std::vector<ValueType> inputs = {ActivationType(Shape::Of({rows, {36}})),
                                         ids(Shape::Of({rows})), ids(Shape::Of({rows})),
                                         ids(Shape::Of({rows, {5}}))};
  const ValueType pool = WeightType(Element::kActivation, {20, 12});
  const auto types = TypesOfCall(OperationNamed("cached_attention"),
                                 ToAttributes(CachedAttentionAttributes{.heads = 1}), inputs,
                                 std::vector{pool, pool});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_THAT(*types, ElementsAre(ActivationType(Shape::Of({rows, {12}}))));
}

TEST(CachedAttentionCost, IsThatOfFullAttentionWithAsManyColumns) {
  const ValueType qkv = ActivationType({8, 36}), history{Element::kIds, Leading::kSamples, {8, 8}};
  const Attributes self = ToAttributes(AttentionAttributes{.heads = 2, .full = true});
  const Cost other = OperationNamed("attention")
                         .CostOf(self, {{qkv}, TypesOrDie("attention", self, {qkv}), {}}, 3);
  const Cost one =
      OperationNamed("cached_attention")
          .CostOf(ToAttributes(CachedAttentionAttributes{.heads = 2}),
                  {{qkv, kStarts, kStarts, history}, {ActivationType({8, 12})}, {kPool, kPool}}, 3);
  EXPECT_EQ(one.products, other.products);
  EXPECT_EQ(one.flops, other.flops);
}

TEST(HeadNormTypes, AreOfQueriesAndKeys) {
  const Attributes heads = ToAttributes(HeadNormAttributes{.heads = 4, .key_heads = 2});
  const ValueType weight = WeightType(Element::kFloat32, {6});
  EXPECT_THAT(TypesOrDie("head_norm", heads, {kGrouped, weight, weight}),
              ElementsAre(kGrouped, ValueType{Element::kFloat32, Leading::kSamples, {8, 6}}));
  EXPECT_EQ(WhyNot("head_norm", heads, {kGrouped, weight, WeightType(Element::kFloat32, {12})}),
            "key_weight is float32[12]; must be float32[6]");
}

TEST(RotaryTypes, NeedPairs) {
  const ValueType odd = ActivationType({8, 3 * 5});
  EXPECT_EQ(WhyNot("rotary", {}, {odd}), "rotary turns pairs; heads are 5 wide, must be even");
  EXPECT_THAT(WhyNot("rotary", ToAttributes(RotaryAttributes{.heads = 7}), {kGrouped}),
              HasSubstr("must be [context, (7 + 2 * 7) * head_width]"));
}

TEST(RotaryTypes, TakePositionsIfTheAttributeCountsThem) {
  const Attributes heads =
      ToAttributes(RotaryAttributes{.heads = 4, .key_heads = 2, .positions = 100});
  EXPECT_EQ(TypesOrDie("rotary", heads, {kGrouped, kStarts}), std::vector<ValueType>{kGrouped});
  EXPECT_EQ(WhyNot("rotary", heads, {kGrouped}),
            "rotary has 1 operands; it takes 2: qkv, positions");
  EXPECT_EQ(WhyNot("rotary", heads, {kGrouped, kLength}), "positions is ids[n]; must be ids[n, 8]");
  EXPECT_EQ(WhyNot("rotary", ToAttributes(RotaryAttributes{.heads = 4, .key_heads = 2}),
                   {kGrouped, kStarts}),
            "rotary has 2 operands; it takes 1: qkv");
}

TEST(AddSinusoidsTypes, TakePositionsIfTheAttributeCountsThem) {
  const Attributes positions = ToAttributes(AddSinusoidsAttributes{.positions = 100});
  EXPECT_EQ(TypesOrDie("add_sinusoids", positions, {kRow, kStarts}), std::vector<ValueType>{kRow});
  EXPECT_EQ(WhyNot("add_sinusoids", positions, {kRow}),
            "add_sinusoids has 1 operands; it takes 2: x, positions");
  EXPECT_EQ(WhyNot("add_sinusoids", positions, {kRow, kLength}),
            "positions is ids[n]; must be ids[n, 8]");
  EXPECT_EQ(WhyNot("add_sinusoids", {}, {kRow, kStarts}),
            "add_sinusoids has 2 operands; it takes 1: x");
}

TEST(RotaryTables, TurnTheFirstPairByOneRadianARow) {
  const RotaryAttributes attributes{.heads = 1, .theta = 100};
  const RotaryTables tables = MakeRotaryTables(attributes, 3, 4);
  ASSERT_EQ(tables.cosines.size(), 6u);
  EXPECT_EQ(tables.cosines[0], 1.0f);
  EXPECT_EQ(tables.sines[1], 0.0f);
  EXPECT_FLOAT_EQ(tables.cosines[4], static_cast<float>(std::cos(2.0)));
  EXPECT_FLOAT_EQ(tables.sines[5], static_cast<float>(std::sin(2.0 / 10)));
  RotaryAttributes back = attributes;
  back.inverse = true;
  const RotaryTables inverse = MakeRotaryTables(back, 3, 4);
  EXPECT_EQ(inverse.cosines, tables.cosines);
  EXPECT_EQ(inverse.sines[5], -tables.sines[5]);
}

// Whoever waits tells slow from stuck by the ticks: a long context is a table of millions of
// angles.
TEST(RotaryTables, TickOnceAPosition) {
  ProgressCounter counter;
  const ProgressScope scope(&counter);
  MakeRotaryTables({.heads = 1}, 37, 4);
  EXPECT_EQ(counter.count(), 37u);
}

// Resuming and other numbers of stages give the same bits: so does the table, pair by pair.
TEST(RotaryTables, AreRoundedOnceFromDoubles) {
  const RotaryTables tables = MakeRotaryTables({.heads = 1, .theta = 12345.678}, 50, 14);
  for (int64_t i = 0; i < 50 * 7; ++i) {
    const double angle =
        static_cast<double>(i / 7) * std::pow(12345.678, -2.0 * static_cast<double>(i % 7) / 14.0);
    ASSERT_EQ(tables.cosines[i], static_cast<float>(std::cos(angle))) << i;
    ASSERT_EQ(tables.sines[i], static_cast<float>(std::sin(angle))) << i;
  }
}

// Llama 3.1's, whose pairs 29 to 34 lie between those that stay and those that are divided. Numbers
// of _compute_llama3_parameters of `transformers`, in double.
TEST(RotaryFrequencies, OfLlama31AreThoseOfItsAuthors) {
  const RotaryScaling llama31{
      .factor = 8, .low_frequency_factor = 1, .high_frequency_factor = 4, .original_context = 8192};
  const std::vector<double> scaled = RotaryFrequencies(5e5, llama31, 128);
  const std::vector<double> plain = RotaryFrequencies(5e5, {}, 128);
  ASSERT_EQ(scaled.size(), 64u);
  for (size_t pair = 0; pair <= 28; ++pair) EXPECT_EQ(scaled[pair], plain[pair]) << pair;
  const double between[] = {0.002166570763503359,  0.0013718935677611381,  0.0008567514129196321,
                            0.0005248461609929547, 0.00031269375038406517, 0.00017850781276799638};
  for (size_t i = 0; i < std::size(between); ++i) {
    EXPECT_NEAR(scaled[29 + i], between[i], 1e-12 * between[i]) << i;
  }
  for (size_t pair = 35; pair < 64; ++pair) EXPECT_EQ(scaled[pair], plain[pair] / 8) << pair;
  EXPECT_NEAR(scaled[63], 3.068925988914511e-07, 1e-18);
}

TEST(RotaryFrequencies, ALinearFactorStretchesPositions) {
  const RotaryAttributes plain{.heads = 1, .theta = 100},
      linear{.heads = 1, .theta = 100, .scaling = {.factor = 4}};
  const RotaryTables whole = MakeRotaryTables(plain, 3, 6), scaled = MakeRotaryTables(linear, 9, 6);
  for (size_t pair = 0; pair < 3; ++pair) {
    EXPECT_FLOAT_EQ(scaled.cosines[8 * 3 + pair], whole.cosines[2 * 3 + pair]) << pair;
    EXPECT_FLOAT_EQ(scaled.sines[8 * 3 + pair], whole.sines[2 * 3 + pair]) << pair;
  }
}

TEST(RotaryTypes, TakeAScalingThatIsWhole) {
  const auto why_not = [](const RotaryScaling& scaling) {
    return WhyNot("rotary",
                  ToAttributes(RotaryAttributes{.heads = 4, .key_heads = 2, .scaling = scaling}),
                  {kGrouped});
  };
  EXPECT_EQ(why_not({.factor = 0.5}), "attribute factor: 0.5; must be 0 or a number in [1, 1e+06]");
  EXPECT_EQ(why_not({.factor = 8, .low_frequency_factor = 1}),
            "attribute original_context: 0; must be given with low_frequency_factor or "
            "high_frequency_factor");
  EXPECT_EQ(why_not({.low_frequency_factor = 1, .high_frequency_factor = 4, .original_context = 9}),
            "attribute factor: 0; must be given with original_context");
  EXPECT_EQ(why_not({.factor = 8, .high_frequency_factor = 4, .original_context = 9}),
            "attribute low_frequency_factor: 0; must be given with original_context");
  EXPECT_EQ(why_not({.factor = 8,
                     .low_frequency_factor = 4,
                     .high_frequency_factor = 4,
                     .original_context = 9}),
            "attribute high_frequency_factor: 4; must be above low_frequency_factor 4");
}

TEST(RotaryTypes, TakeAThetaThatTurns) {
  for (const double theta : {0.5, 2e12}) {
    EXPECT_THAT(
        WhyNot("rotary", ToAttributes(RotaryAttributes{.heads = 1, .theta = theta}), {kGrouped}),
        HasSubstr("must be a number in [1, 1e+12]"));
  }
}

TEST(GroupedAttentionTypes, RefuseMoreHeadsThanCanBeCounted) {
  const AttentionAttributes attributes{.heads = int64_t{1} << 62};
  EXPECT_EQ(WhyNot("attention", ToAttributes(attributes), {kGrouped}),
            "attribute heads: 4611686018427387904; must be <= 1048576");
}

TEST(SwigluTypes, NeedTwoOfOneType) {
  EXPECT_EQ(WhyNot("swiglu", {}, {kRow, kGrouped}),
            "up is activation[n, 8, 48]; must be activation[n, 8, 16]");
  EXPECT_THAT(TypesOrDie("swiglu_gradient", {}, {kRow, kRow, kRow}), ElementsAre(kRow, kRow));
}

}  // namespace
}  // namespace stagecoach
