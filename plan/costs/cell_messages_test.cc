// The largest messages that reach a cell, by hand.
#include "plan/costs/cell_messages.h"

#include <gtest/gtest.h>

#include "network/network_kinds.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

constexpr int64_t kTinyContext = 16, kTinyWidth = 32, kTinyVocabulary = 512;
constexpr int64_t kActivation = kTinyContext * kTinyWidth * 4;  // of a sample
constexpr int64_t kEmbedding = kTinyVocabulary * kTinyWidth;    // elements

Network TinyGpt(bool tied, Precision precision = Precision::kFloat32) {
  const auto network = ExpandNetwork(GptSpec{.layers = 1,
                                             .width = kTinyWidth,
                                             .heads = 2,
                                             .context = kTinyContext,
                                             .vocabulary = kTinyVocabulary,
                                             .tied_embeddings = tied},
                                     precision);
  EXPECT_TRUE(network.ok()) << network.status();
  return *network;
}

TEST(CellMessages, AreTheActivationsOfTheLargestMicroBatch) {
  const Network gpt = TinyGpt(false);
  const int layers = static_cast<int>(gpt.layers.size());
  const ArrivingMessages middle = MessagesOfCell(gpt, 1, layers - 1, 3);
  EXPECT_EQ(middle.from_before, 3 * kActivation);
  EXPECT_EQ(middle.from_behind, 3 * kActivation);
  EXPECT_EQ(MessagesOfCell(gpt, 0, 1, 3).from_before, 0) << "nobody is before it";
  EXPECT_EQ(MessagesOfCell(gpt, 1, layers, 3).from_behind, 0);
  const Network narrow = TinyGpt(false, Precision::kBfloat16);
  EXPECT_EQ(MessagesOfCell(narrow, 1, layers, 3).from_before, 3 * kActivation / 2);
}

TEST(CellMessages, OrTiedParametersWhereThoseAreLarger) {
  const Network gpt = TinyGpt(true);
  const int layers = static_cast<int>(gpt.layers.size());
  EXPECT_EQ(MessagesOfCell(gpt, 1, layers, 1).from_before, 4 * kEmbedding);
  EXPECT_EQ(MessagesOfCell(gpt, 0, layers - 1, 1).from_behind, 4 * kEmbedding);
  EXPECT_EQ(MessagesOfCell(gpt, 1, layers, 1000).from_before, 1000 * kActivation);
  const Network narrow = TinyGpt(true, Precision::kBfloat16);
  EXPECT_EQ(MessagesOfCell(narrow, 1, layers, 1).from_before, 2 * kEmbedding);
  EXPECT_EQ(MessagesOfCell(narrow, 0, layers - 1, 1).from_behind, 4 * kEmbedding)
      << "gradients are float32";
}

}  // namespace
}  // namespace stagecoach
