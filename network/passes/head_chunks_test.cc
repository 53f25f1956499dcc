// Of which networks the head goes by chunks, and by chunks of how many rows.
#include "network/passes/head_chunks.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/embedding.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/network_kinds.h"
#include "network/objectives/mean_squared_error.h"
#include "network/passes/freeze.h"
#include "network/passes/padded_output.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "network/zoo/vit.h"

namespace stagecoach {
namespace {

constexpr GptSpec kChunkGpt{.layers = 2, .width = 8, .heads = 2, .context = 4, .vocabulary = 17};
// GPT-2's, on which the limits were chosen.
constexpr GptSpec kWideGpt{
    .layers = 1, .width = 8, .heads = 2, .context = 1024, .vocabulary = 50257};

SequenceSpec ListOnText(std::vector<LayerSpec> layers) {
  return {.width = 8, .context = 4, .vocabulary = 17, .layers = std::move(layers)};
}

TEST(HeadChunks, AreThoseOfALanguageModelsHead) {
  EXPECT_TRUE(HeadGoesByChunks(*ExpandNetwork(kChunkGpt)));
  GptSpec tied = kChunkGpt;
  tied.tied_embeddings = true;
  EXPECT_TRUE(HeadGoesByChunks(*ExpandNetwork(tied, Precision::kBfloat16)));
  EXPECT_TRUE(HeadGoesByChunks(*ExpandNetwork(LlamaSpec{
      .layers = 1, .width = 8, .heads = 2, .hidden = 16, .context = 4, .vocabulary = 17})));
}

TEST(HeadChunks, AreThoseOfAHeadOrOfWhatIsInFrontOfItIfTheRestIsFrozen) {
  for (const char* frozen : {"model/0000/*", "model/0006/*"}) {
    const Network network = *Freeze(*ExpandNetwork(kChunkGpt), {frozen}, "training.freeze");
    EXPECT_TRUE(HeadGoesByChunks(network)) << frozen;
  }
}

TEST(HeadChunks, AreNotThoseOfALastLayerThatIsNotOnePlainLinear) {
  const LayerSpec embedding = EmbeddingSpec{};
  const LayerSpec plain = LinearSpec{.out = 17, .bias = false};
  EXPECT_TRUE(HeadGoesByChunks(*ExpandNetwork(ListOnText({embedding, plain}))));
  EXPECT_FALSE(HeadGoesByChunks(*ExpandNetwork(ListOnText({embedding, LinearSpec{.out = 17}}))))
      << "it has a bias";
  EXPECT_FALSE(HeadGoesByChunks(*ExpandNetwork(ListOnText({embedding, plain, ReluSpec{}}))));
  const LayerSpec two = ResidualSpec{{LayerNormSpec{}, LinearSpec{.out = 17, .bias = false}}};
  SequenceSpec residual = ListOnText({embedding, two});
  residual.width = 17;
  EXPECT_FALSE(HeadGoesByChunks(*ExpandNetwork(residual))) << "it is a part of a layer";
}

TEST(HeadChunks, AreNotThoseOfWhatTheDataSourceGives) {
  Network network = *ExpandNetwork(SequenceSpec{
      .layers = {FlattenSpec{}, LinearSpec{.out = 4}, LinearSpec{.out = 5, .bias = false}},
      .image = {2, 2, 1},
      .classes = 5});
  EXPECT_TRUE(HeadGoesByChunks(network));
  network.layers.back().inputs[0] = network.InputNamed("images");
  EXPECT_FALSE(HeadGoesByChunks(network)) << "a stage loads them, and they have no gradient";
}

TEST(HeadChunks, AreNotThoseOfLogitsThatAreNoWiderThanWhatTheyAreMadeOf) {
  GptSpec narrow = kChunkGpt;
  narrow.width = 16;
  EXPECT_TRUE(HeadGoesByChunks(*ExpandNetwork(narrow)));
  narrow.vocabulary = 16;
  EXPECT_FALSE(HeadGoesByChunks(*ExpandNetwork(narrow)));
}

TEST(HeadChunks, AreNotThoseOfAnotherObjective) {
  SequenceSpec list{.layers = {LinearSpec{.out = 8}, LinearSpec{.out = 4, .bias = false}},
                    .image = {4, 4, 4},
                    .classes = 2};
  NetworkSpec spec = list;
  spec.objective = MeanSquaredErrorSpec{};
  const auto network = ExpandNetwork(spec);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_FALSE(HeadGoesByChunks(*network));
}

TEST(HeadChunks, HaveAPowerOfTwoOfRowsThatFitTheBytes) {
  const Network wide = *ExpandNetwork(kWideGpt, Precision::kBfloat16);
  EXPECT_EQ(HeadChunkRows(wide, kCardHeadChunks), 4096) << "2 * 50264 bytes a row, 412 MB";
  EXPECT_EQ(HeadChunkRows(*ExpandNetwork(kWideGpt), kCardHeadChunks), 2048);
  const int64_t row = 2 * 50264;
  EXPECT_EQ(HeadChunkRows(wide, {.bytes = 8 * row}), 8);
  EXPECT_EQ(HeadChunkRows(wide, {.bytes = 8 * row - 1}), 4);
  EXPECT_EQ(HeadChunkRows(wide, {.bytes = 0}), 1) << "one at least";
  EXPECT_EQ(HeadChunkRows(wide, {.bytes = 0, .least_rows = 256}), 256);
  EXPECT_EQ(HeadChunkRows(wide, {.bytes = 300 * row, .least_rows = 256}), 256);
}

TEST(HeadChunks, TakeTheBytesOfTheLargestOne) {
  const Network wide = *ExpandNetwork(kWideGpt, Precision::kBfloat16);
  EXPECT_EQ(HeadRows(wide, 32), 32 * 1024);
  EXPECT_EQ(HeadChunkBytes(wide, kCardHeadChunks, 32, false), int64_t{4096} * 50264 * 2);
  EXPECT_EQ(HeadChunkBytes(wide, kCardHeadChunks, 32, true), int64_t{4096} * 50257 * 2);
  EXPECT_EQ(HeadChunkBytes(wide, kCardHeadChunks, 2, false), int64_t{2048} * 50264 * 2)
      << "a micro-batch that is smaller than a chunk";
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(HeadRows(wide, most), most);
  EXPECT_EQ(HeadChunkBytes(wide, kCardHeadChunks, most, false), int64_t{4096} * 50264 * 2);
}

// The same calls with the same weights; only a sample is another thing.
TEST(HeadChunks, ByRowsASampleIsARow) {
  const Network gpt = *ExpandNetwork(kChunkGpt);
  const Network by_rows = HeadByRows(gpt);
  const LayerLists &lists = *gpt.layers.back().lists, &rows = *by_rows.layers.back().lists;
  ASSERT_EQ(rows.values.size(), lists.values.size());
  for (size_t i = 0; i < lists.values.size(); ++i) {
    const ValueType &type = lists.values[i].type, &of_rows = rows.values[i].type;
    EXPECT_EQ(of_rows.element, type.element);
    EXPECT_EQ(TypeElements(of_rows, 3 * 4), TypeElements(type, 3)) << "3 samples of 4 rows";
  }
  EXPECT_EQ(by_rows.wire(by_rows.objective.output).type.shape, Shape{17});
  EXPECT_EQ(by_rows.objective.target_type.shape, Shape());
  EXPECT_TRUE(HeadGoesByChunks(by_rows));
  EXPECT_TRUE(PaddableOutput(by_rows, by_rows.layers.back()).has_value());
  EXPECT_EQ(HeadRows(by_rows, 12), 12);
  EXPECT_EQ(gpt.wire(gpt.objective.output).type.shape, (Shape{4, 17})) << "untouched";
}

TEST(HeadChunks, OfAnImageNetworkWithABiasAreNone) {
  EXPECT_FALSE(
      HeadGoesByChunks(*ExpandNetwork(ResnetSpec{.image = {8, 8, 3}, .classes = 9, .depth = 8})));
}

}  // namespace
}  // namespace stagecoach
