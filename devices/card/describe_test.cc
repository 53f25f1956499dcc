#include "devices/card/describe.h"

#include <gtest/gtest.h>

#include "operations/attention/attention.h"
#include "operations/attributes.h"

namespace stagecoach {
namespace {

constexpr int64_t kContext = 256, kHeads = 6, kWidth = 384;

const CardProfile kCard = {.attention = AttentionKernels{.name = "fused kernels",
                                                         .precisions = {Precision::kBfloat16},
                                                         .tile = 128,
                                                         .widest_head = 128,
                                                         .head_multiple = 8,
                                                         .score_bytes = int64_t{256} << 20}};

CallDescription Describe(const CardProfile& card, bool gradient, int64_t samples,
                         Precision precision = Precision::kBfloat16) {
  const ValueType qkv = ActivationType({kContext, 3 * kWidth});
  const ValueType out = ActivationType({kContext, kWidth});
  const ValueType log_sum_exp{Element::kFloat32, Leading::kSamples, {kHeads, kContext}};
  const Attributes attributes = ToAttributes(AttentionAttributes{.heads = kHeads});
  if (!gradient) {
    return DescribeOnCard(card, {.operation = "attention", .attributes = attributes},
                          {{qkv}, {out, log_sum_exp}, {}}, samples, precision);
  }
  return DescribeOnCard(card, {.operation = "attention_gradient", .attributes = attributes},
                        {{out, qkv, out, log_sum_exp}, {qkv}, {}}, samples, precision);
}

TEST(DescribeOnCard, AGradientStoresScoresThatTheWorkspaceHasNoRoomFor) {
  EXPECT_EQ(Describe(kCard, true, 64).shared, 64 * kHeads * 2 * kContext * kContext);
  EXPECT_EQ(Describe(kCard, true, 32).shared, 0) << "24 MiB are there";
  EXPECT_EQ(Describe(kCard, false, 64).shared, 0);
  EXPECT_EQ(Describe(kCard, true, 64).way, "fused kernels");
}

TEST(DescribeOnCard, OwnKernelsStoreNone) {
  const CallDescription own = Describe(kCard, true, 64, Precision::kFloat32);
  EXPECT_EQ(own.shared, 0);
  EXPECT_EQ(own.way, "own kernels");
  EXPECT_EQ(own.why, "the precision is float32");
  EXPECT_EQ(Describe(CardProfile{}, true, 64), CallDescription{});
}

TEST(DescribeOnCard, OtherCallsTakeNothingBeyondTheWorkspace) {
  const ValueType rows = ActivationType({4});
  EXPECT_EQ(DescribeOnCard(kCard, {.operation = "add"}, {{rows, rows}, {rows}, {}}, 3,
                           Precision::kBfloat16),
            CallDescription{});
}

}  // namespace
}  // namespace stagecoach
