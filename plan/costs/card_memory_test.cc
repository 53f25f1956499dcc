// What a card needs beside its tensors, by hand-worked programs and shapes.
#include "plan/costs/card_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/errors/check.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/resnet.h"
#include "plan/costs/cost_model.h"
#include "plan/optimizers/adamw.h"

namespace stagecoach {
namespace {

constexpr int64_t kCardContext = 256, kCardWidth = 384, kCardHeads = 6, kCardVocabulary = 512;
constexpr int64_t kHeadBytes = 2 * kCardContext * kCardContext, kMiB = int64_t{1} << 20;

// Of a library like those that there are.
const AttentionKernels kFused = {.name = "fused kernels",
                                 .precisions = {Precision::kBfloat16},
                                 .tile = 128,
                                 .widest_head = 128,
                                 .head_multiple = 8,
                                 .score_bytes = 256 * kMiB};
const CardProfile kCard = {.attention = kFused};

Network CardGpt(Precision precision = Precision::kFloat32, double dropout = 0) {
  return *ExpandNetwork(GptSpec{.layers = 3,
                                .width = kCardWidth,
                                .heads = kCardHeads,
                                .context = kCardContext,
                                .vocabulary = kCardVocabulary,
                                .dropout = dropout},
                        precision);
}

// What a card needs more than the same stage elsewhere, the workspace left out, and what waits in
// links, whose memory is the host's.
int64_t Beside(const ScheduleOptions& options, int stage, int first, int last, int64_t batch_size) {
  StageMemoryQuery query{.cells = {{first, last}},
                         .batch_size = batch_size,
                         .micro_batches = options.micro_batches,
                         .optimizer = AdamWSpec{},
                         .link_capacity = 0};
  const std::vector<StageProgram> programs = MakeSchedule(options).programs;
  const StageMemory host = ForecastStageMemory(CardGpt(), programs, stage, query);
  query.card = CardProfile{};
  const StageMemory card = ForecastStageMemory(CardGpt(), programs, stage, query);
  EXPECT_EQ(card.parameters, host.parameters);
  EXPECT_EQ(card.gradients, host.gradients);
  EXPECT_EQ(card.optimizer, host.optimizer);
  return card.activations - host.activations - kCardWorkspaceBytes;
}

// A whole head drops what it has read before it makes the gradient of that; by chunks both are
// there.
TEST(CardMemory, OfOneStageIsThePlaceOfTheNextIdsAndWhatTheHeadReads) {
  for (const int micro_batches : {1, 4}) {
    EXPECT_EQ(Beside({.stages = 1, .micro_batches = micro_batches}, 0, 0, 9, 4),
              4 / micro_batches * (4 * kCardContext + 4 * kCardContext * kCardWidth))
        << "inputs and targets have one size";
  }
}

TEST(CardMemory, OfAMiddleStageIsTwoOutboxesAndOnePlaceAhead) {
  // At the first backward two activations are still copied, no gradient was sent; at the second one
  // there is a gradient more, and one input less is kept.
  const int64_t boundary = 4 * kCardContext * kCardWidth;
  EXPECT_EQ(Beside({.stages = 3, .micro_batches = 4}, 1, 1, 3, 4), (2 + 1) * boundary);
}

// At the first loss a whole head has logits of both micro-batches; by chunks there are those of
// one, here all of its rows, and the gradient of what the head reads.
TEST(CardMemory, OfALastStageIsThePlacesOfActivationsAndTargetsAndFewerLogits) {
  const int64_t boundary = 3 * 4 * kCardContext * kCardWidth, ids = 3 * 4 * kCardContext;
  const int64_t logits = 3 * 4 * kCardContext * kCardVocabulary;
  EXPECT_EQ(
      Beside({.rematerialization = Rematerialization::kNever, .stages = 2, .micro_batches = 2}, 1,
             7, 9, 6),
      boundary + ids + boundary - logits);
}

// 32 sequences of GPT-2's vocabulary on a stage with nothing but the head: what it reads, the
// gradient of that, a chunk.
TEST(CardMemory, OfAHeadAloneIsOneChunkOfItsLogits) {
  const GptSpec gpt = {.layers = 1, .width = 128, .heads = 2, .context = 1024, .vocabulary = 50257};
  const Network network = *ExpandNetwork(gpt, Precision::kBfloat16);
  const std::vector<StageProgram> programs =
      MakeSchedule({.stages = 2, .micro_batches = 1}).programs;
  StageMemoryQuery query{.cells = {{4, 5}},
                         .batch_size = 32,
                         .micro_batches = 1,
                         .optimizer = AdamWSpec{},
                         .card = CardProfile{}};
  const int64_t rows = 32 * 1024, boundary = 2 * 128 * rows, ids = 4 * rows;
  const int64_t places = boundary + ids;  // of what comes next
  EXPECT_EQ(ForecastStageMemory(network, programs, 1, query).activations - kCardWorkspaceBytes,
            2 * boundary + ids + places + int64_t{4096} * 50264 * 2);
  query.head_chunks = {.bytes = int64_t{1} << 40};
  EXPECT_EQ(ForecastStageMemory(network, programs, 1, query).activations - kCardWorkspaceBytes,
            2 * boundary + ids + places + rows * 50264 * 2)
      << "all in one chunk";
  const std::vector<StageProgram> evaluation =
      MakeSchedule({.stages = 2, .micro_batches = 1, .forward_only = true}).programs;
  query.evaluation = evaluation;
  query.head_chunks = kCardHeadChunks;
  EXPECT_EQ(ForecastStageMemory(network, {}, 1, query).activations - kCardWorkspaceBytes,
            boundary + ids + places + int64_t{4096} * 50257 * 2)
      << "dense, and without a gradient";
}

// An answer says that the activation has left: a pipeline that waits for each holds no copy at its
// peak, the backward.
TEST(CardMemory, AnAnsweredActivationIsNotHeld) {
  const int64_t boundary = 4 * kCardContext * kCardWidth, ids = 4 * kCardContext;
  EXPECT_EQ(Beside({.stages = 2, .micro_batches = 1}, 0, 0, 7, 1), boundary + ids)
      << "the places of gradients and ids";
}

int64_t Workspace(const Network& network, int64_t batch_size, int64_t micro_batches, int first = 0,
                  int last = 9) {
  return CallBytesOnCard(kCard, network, first, last, batch_size, micro_batches);
}

TEST(CardMemory, AttentionTakesTheScoresOfASliceIfTheyDoNotFitTheWorkspace) {
  const Network network = CardGpt(Precision::kBfloat16);
  EXPECT_EQ(Workspace(network, 64, 1), 64 * kCardHeads * kHeadBytes);
  EXPECT_EQ(Workspace(network, 64, 2), 0) << "24 MiB are there";
  EXPECT_EQ(Workspace(network, 1000, 1), 250 * kCardHeads * kHeadBytes) << "256 MiB at most";
  EXPECT_EQ(Workspace(network, 685, 2), 171 * kCardHeads * kHeadBytes)
      << "342 has larger parts than 343";
  EXPECT_EQ(Workspace(network, 64, 1, 7, 9), 0) << "no attention in these layers";
  EXPECT_EQ(Workspace(network, 64, 1, 1, 2), 64 * kCardHeads * kHeadBytes);
  EXPECT_EQ(Workspace(CardGpt(Precision::kFloat32), 64, 1), 0);
  EXPECT_EQ(Workspace(CardGpt(Precision::kBfloat16, 0.1), 64, 1), 0);
}

TEST(CardMemory, TheForecastCountsBothWorkspaces) {
  const Network network = CardGpt(Precision::kBfloat16);
  StageMemoryQuery query{.cells = {{0, 9}}, .batch_size = 64, .micro_batches = 1};
  const auto programs = MakeSchedule({.stages = 1, .micro_batches = 1}).programs;
  const int64_t host = ForecastStageMemory(network, programs, 0, query).activations;
  const int64_t read_by_head = 64 * 2 * kCardContext * kCardWidth;
  query.card = kCard;
  EXPECT_EQ(ForecastStageMemory(network, programs, 0, query).activations - host,
            32 * kMiB + 48 * kMiB + 64 * 4 * kCardContext + read_by_head);
  query.card->attention.reset();
  EXPECT_EQ(ForecastStageMemory(network, programs, 0, query).activations - host,
            32 * kMiB + 64 * 4 * kCardContext + read_by_head)
      << "own kernels store no matrices";
}

TEST(CardMemory, TheForecastCountsThePaddingOfLogits) {
  const auto programs = MakeSchedule({.stages = 1, .micro_batches = 1}).programs;
  const auto beside_host = [&](int64_t vocabulary) {
    const Network network = *ExpandNetwork(GptSpec{.layers = 1,
                                                   .width = 384,
                                                   .heads = 6,
                                                   .context = kCardContext,
                                                   .vocabulary = vocabulary},
                                           Precision::kBfloat16);
    StageMemoryQuery query{.cells = {{0, static_cast<int>(network.layers.size())}},
                           .batch_size = 64,
                           .micro_batches = 1};
    const int64_t host = ForecastStageMemory(network, programs, 0, query).activations;
    query.card = CardProfile{};
    return ForecastStageMemory(network, programs, 0, query).activations - host;
  };
  EXPECT_EQ(beside_host(513) - beside_host(512), 64 * kCardContext * (520 - 513) * 2);
}

TEST(CardMemory, OfAbsurdSizesIsTooMuchNotNegative) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  StageMemoryQuery query{.cells = {{1, 7}},
                         .batch_size = int64_t{1} << 50,
                         .micro_batches = 4,
                         .card = kCard};
  const auto programs =
      MakeSchedule(
          {.rematerialization = Rematerialization::kNever, .stages = 3, .micro_batches = 4})
          .programs;
  const Network network = CardGpt(Precision::kBfloat16);
  EXPECT_EQ(ForecastStageMemory(network, programs, 1, query).activations, most);
}

TEST(CardMemory, APlanSaysByHowManyRowsTheHeadGoes) {
  GptSpec gpt = {.layers = 1, .width = 8, .heads = 2, .context = 8, .vocabulary = 50257};
  EXPECT_EQ(HeadOnCard(*ExpandNetwork(gpt, Precision::kBfloat16)),
            "with the loss by 4096 rows at a time");
  EXPECT_EQ(HeadOnCard(*ExpandNetwork(ResnetSpec{.image = {8, 8, 3}, .classes = 9, .depth = 8})),
            "");
}

TEST(CardMemory, APlanSaysWhyACardsAttentionWillBeSlow) {
  const auto on_card = [](GptSpec gpt, Precision precision) {
    const auto network = ExpandNetwork(gpt, precision);
    CHECK_OK(network.status());
    return KernelsOnCard(kCard, *network);
  };
  GptSpec gpt = {.layers = 2, .width = 128, .heads = 2, .context = 128, .vocabulary = 16};
  EXPECT_THAT(on_card(gpt, Precision::kBfloat16),
              testing::StartsWith("attention: through fused kernels, "));
  EXPECT_THAT(on_card(gpt, Precision::kFloat32), testing::HasSubstr("the precision is float32"));
  gpt.dropout = 0.1;
  EXPECT_THAT(on_card(gpt, Precision::kBfloat16), testing::HasSubstr("own, slower kernels"));
  gpt.dropout = 0;
  gpt.context = 100;
  EXPECT_THAT(on_card(gpt, Precision::kBfloat16),
              testing::HasSubstr("the context, 100, is no multiple of 128"));
  gpt.context = 128;
  gpt.heads = 32;
  EXPECT_THAT(on_card(gpt, Precision::kBfloat16), testing::HasSubstr("heads are 4 wide"));
}

}  // namespace
}  // namespace stagecoach
