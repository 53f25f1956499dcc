#include "stage/layers/call_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/errors/check.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/costs/keyed_network_testing.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Pair;

// A device with a library that takes even numbers of sequences.
class ChoosyBackend final : public ReferenceBackend {
 public:
  ChoosyBackend() : ReferenceBackend(BackendOptions{}) {}
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override {
    std::string text =
        absl::StrCat(samples, " ", call.operation, " ", FormatAttributes(call.attributes));
    for (const auto* side : {&types.inputs, &types.outputs, &types.adds}) {
      for (const ValueType& type : *side) absl::StrAppend(&text, " ", FormatType(type));
    }
    ++asked[text];
    if (call.operation == lacks) return absl::UnimplementedError("no kernel");
    if (call.operation != "attention" || types.inputs.size() > 1) return CallDescription{};
    if (broken) return absl::InternalError("no libnvrtc");
    ++attentions;
    CallDescription own{.way = "own kernels", .way_varies = true};
    if (activation != DType::kBF16) {
      own.why = "the tensors are F32";
    } else if (samples % 2 != 0) {
      own.why = "cuDNN 9.19.0 does not support the shape";
    } else {
      own.way = "cuDNN";
    }
    return own;
  }

  std::map<std::string, int> asked;
  int attentions = 0;
  std::string lacks;
  bool broken = false;
};

absl::StatusOr<CallWays> AskAbout(Backend& device, Precision precision = Precision::kBfloat16) {
  const GptSpec gpt = {.layers = 3, .width = 32, .heads = 4, .context = 128, .vocabulary = 16};
  const auto network = ExpandNetwork(gpt, precision);
  CHECK_OK(network.status());
  TrainingSpec training;
  training.batch_size = 7;  // micro-batches of 4 and 3 sequences
  training.micro_batches = 2;
  return AskCallWays(*network, training, device);
}

constexpr char kWays[] =
    ", 4x128 attention of 4 heads: cuDNN, 3x128 attention of 4 heads: own kernels";

// Two machines with the same libraries said the same, and one of them computed by its own kernels.
TEST(CallWays, WhoComputesAShapeIsAPartOfTheFingerprint) {
  ChoosyBackend device;
  const auto ways = AskAbout(device);
  ASSERT_TRUE(ways.ok()) << ways.status();
  EXPECT_EQ(ways->fingerprint, kWays);
  EXPECT_EQ(ways->note,
            "4x128 attention of 4 heads by cuDNN; 3x128 attention of 4 heads by own kernels, as "
            "cuDNN 9.19.0 does not support the shape");
  EXPECT_EQ(device.attentions, 2) << "once for a shape, however many blocks have it";
  EXPECT_THAT(AskAbout(device, Precision::kFloat32)->note, HasSubstr("the tensors are F32"));
}

TEST(CallWays, EveryCallOfATrainingStepIsAskedAboutOnce) {
  ChoosyBackend device;
  ASSERT_TRUE(AskAbout(device).ok());
  EXPECT_THAT(device.asked, Each(Pair(testing::_, 1)));
  bool gradient = false;
  for (const auto& [call, times] : device.asked) {
    gradient = gradient || call.find(" linear_weight_gradient ") != std::string::npos;
  }
  EXPECT_TRUE(gradient);
}

TEST(CallWays, ADeviceWithOneWaySaysNothing) {
  const auto backend = MakeReferenceBackend({});
  const auto ways = AskAbout(*backend);
  ASSERT_TRUE(ways.ok()) << ways.status();
  EXPECT_EQ(ways->fingerprint, "");
  EXPECT_EQ(ways->note, "");
}

TEST(CallWays, AttentionsWithKeysHaveOneWay) {
  ChoosyBackend device;
  TrainingSpec training;
  training.batch_size = training.micro_batches = 1;
  const auto ways = AskCallWays(MakeKeyedNetwork(), training, device);
  ASSERT_TRUE(ways.ok()) << ways.status();
  EXPECT_EQ(ways->fingerprint, "");
  EXPECT_EQ(device.attentions, 0);
}

// The plan gave the layer to another stage. Equal devices must have equal texts all the same.
TEST(CallWays, ACallWithoutAKernelIsLeftToTheStageThatHasItsLayer) {
  ChoosyBackend device;
  device.lacks = "embedding";
  const auto ways = AskAbout(device);
  ASSERT_TRUE(ways.ok()) << ways.status();
  EXPECT_EQ(ways->fingerprint, kWays);
}

TEST(CallWays, WhatIsBrokenIsNoWay) {
  ChoosyBackend device;
  device.broken = true;
  EXPECT_EQ(AskAbout(device).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace stagecoach
