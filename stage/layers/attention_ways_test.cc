#include "stage/layers/attention_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors/check.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/costs/keyed_network_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

// A device with a library that takes even numbers of sequences.
struct Choosy {
  absl::StatusOr<AttentionWay> Way(const AttentionShape& shape, DType dtype) {
    ++asked;
    if (broken) return absl::InternalError("no libnvrtc");
    if (dtype != DType::kBF16) return AttentionWay{"own kernels", "the tensors are F32"};
    if (shape.sequences % 2 == 0) return AttentionWay{"cuDNN", ""};
    return AttentionWay{"own kernels", "cuDNN 9.19.0 does not support the shape"};
  }
  int asked = 0;
  bool broken = false;
};

absl::StatusOr<AttentionWays> AskAbout(const AskWay& ask,
                                       Precision precision = Precision::kBfloat16) {
  const GptSpec gpt = {.layers = 3, .width = 32, .heads = 4, .context = 128, .vocabulary = 16};
  const auto network = ExpandNetwork(gpt, precision);
  CHECK_OK(network.status());
  TrainingSpec training;
  training.batch_size = 7;  // micro-batches of 4 and 3 sequences
  training.micro_batches = 2;
  return AskAttentionWays(*network, training, ask);
}

AskWay By(Choosy& device) {
  return [&device](const AttentionShape& shape, DType dtype) { return device.Way(shape, dtype); };
}

// Two machines with the same libraries said the same, and one of them computed by its own kernels.
TEST(AttentionWays, WhoComputesAShapeIsAPartOfTheFingerprint) {
  Choosy device;
  const auto ways = AskAbout(By(device));
  ASSERT_TRUE(ways.ok()) << ways.status();
  EXPECT_EQ(ways->fingerprint,
            ", 4x128 attention of 4 heads: cuDNN, 3x128 attention of 4 heads: own kernels");
  EXPECT_THAT(ways->note, HasSubstr("own kernels, as cuDNN 9.19.0 does not support the shape"));
  EXPECT_EQ(device.asked, 2) << "once for a shape, however many blocks have it";
  EXPECT_THAT(AskAbout(By(device), Precision::kFloat32)->note, HasSubstr("the tensors are F32"));
}

TEST(AttentionWays, ADeviceWithOneWaySaysNothing) {
  const auto backend = MakeReferenceBackend({});
  const auto ways = AskAbout([&backend](const AttentionShape& shape, DType dtype) {
    return backend->WayOfAttention(shape, dtype);
  });
  ASSERT_TRUE(ways.ok()) << ways.status();
  EXPECT_EQ(ways->fingerprint, "");
  EXPECT_EQ(ways->note, "");
}

TEST(AttentionWays, AttentionsWithKeysAreNotAskedAbout) {
  Choosy device;
  TrainingSpec training;
  training.batch_size = training.micro_batches = 1;
  const auto ways = AskAttentionWays(MakeKeyedNetwork(), training, By(device));
  ASSERT_TRUE(ways.ok()) << ways.status();
  EXPECT_EQ(ways->fingerprint, "");
  EXPECT_EQ(device.asked, 0);
}

TEST(AttentionWays, WhatIsBrokenIsNoWay) {
  Choosy device;
  device.broken = true;
  EXPECT_EQ(AskAbout(By(device)).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace stagecoach
