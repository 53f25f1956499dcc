// Of which networks logits may have padded rows.
#include "network/passes/padded_output.h"

#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/resnet.h"

namespace stagecoach {
namespace {

int Paddable(const Network& network) {
  int found = 0;
  for (const NetworkLayer& layer : network.layers) {
    found += PaddableOutput(network, layer).has_value();
  }
  return found;
}

constexpr GptSpec kGpt{.layers = 2, .width = 8, .heads = 2, .context = 4, .vocabulary = 17};

TEST(PaddedOutput, AreThoseOfALanguageModelsHead) {
  const Network gpt = *ExpandNetwork(kGpt);
  EXPECT_EQ(Paddable(gpt), 1);
  EXPECT_TRUE(PaddableOutput(gpt, gpt.layers.back()).has_value());
  GptSpec tied = kGpt;
  tied.tied_embeddings = true;
  EXPECT_EQ(Paddable(*ExpandNetwork(tied)), 1);
}

TEST(PaddedOutput, AreNotThoseOfAHeadWithABias) {
  EXPECT_EQ(Paddable(*ExpandNetwork(ResnetSpec{.image = {8, 8, 3}, .classes = 9, .depth = 8})), 0);
}

TEST(PaddedOutput, BeginRowsAtWhole16Bytes) {
  EXPECT_EQ(PaddedColumns(50257, DType::kBF16), 50264);
  EXPECT_EQ(PaddedColumns(50257, DType::kF32), 50260);
  EXPECT_EQ(PaddedColumns(50304, DType::kBF16), 50304);
  EXPECT_EQ(PaddedColumns(1, DType::kBF16), 8);
}

TEST(PaddedOutput, TakeTheirPaddingOfAllMicroBatches) {
  const Network network = *ExpandNetwork(kGpt, Precision::kBfloat16);
  const int layers = static_cast<int>(network.layers.size());
  EXPECT_EQ(PaddingBytes(network, 0, layers, 6), 6 * 4 * (24 - 17) * 2);
  EXPECT_EQ(PaddingBytes(network, 0, layers - 1, 6), 0) << "the head is elsewhere";
}

}  // namespace
}  // namespace stagecoach
