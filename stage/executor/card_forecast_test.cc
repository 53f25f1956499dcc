// The planner's forecast against what the allocators of stages on cards saw: copies at the
// boundaries, places ahead, chunks of the head.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/costs/card_memory.h"
#include "plan/costs/cost_model.h"
#include "plan/optimizers/adamw.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

// Whole 512 bytes.
constexpr GptSpec kCardGpt{.layers = 2, .width = 32, .heads = 2, .context = 64, .vocabulary = 64};
constexpr int64_t kCardBatch = 8, kCardMicroBatches = 4;

int64_t ActivationsOnCard(Backend& backend) {
  return backend.allocator().Use().peak[static_cast<int>(MemoryKind::kActivations)];
}

// What passes on cards take of their forecasts, workspaces left out. Copies run late and in an
// order drawn from the seed.
struct OnCards {
  GptSpec spec;
  int stages = 1;
  HeadChunkLimits head_chunks = kCardHeadChunks;
  bool evaluation = false;
  double least = 0.6;  // that every stage takes
};
std::vector<double> TakenOnCards(const OnCards& cards, const std::string& schedule,
                                 Rematerialization mode, uint64_t seed) {
  int made = 0;
  HarnessOptions options{.stages = cards.stages,
                         .gpt = cards.spec,
                         .batch_size = kCardBatch,
                         .micro_batches = kCardMicroBatches,
                         .schedule = schedule,
                         .rematerialization = mode,
                         .evaluation_sequences = kCardBatch,
                         .order_seed = seed,
                         .patience = 1000};
  options.make_backend = [&] {
    auto backend = std::make_unique<StagedBackend>(100 * seed + static_cast<uint64_t>(++made));
    backend->CutHeads(cards.head_chunks);
    return backend;
  };
  PipelineHarness pipeline(options);
  const absl::Status passed =
      cards.evaluation ? pipeline.Evaluate(0).status() : pipeline.TrainStep();
  EXPECT_TRUE(passed.ok()) << passed;
  const Network network = *ExpandNetwork(cards.spec);
  const int layers = static_cast<int>(network.layers.size());
  std::span<const StageProgram> steps, evaluation;
  (cards.evaluation ? evaluation : steps) = pipeline.programs(!cards.evaluation);
  std::vector<double> taken;
  for (int k = 0; k < cards.stages; ++k) {
    const StageMemory forecast =
        ForecastStageMemory(network, steps, k,
                            {.cells = pipeline.partition().LayersOf(k, layers),
                             .batch_size = kCardBatch,
                             .micro_batches = kCardMicroBatches,
                             .optimizer = AdamWSpec{},
                             .card = CardProfile{},
                             .head_chunks = cards.head_chunks,
                             .evaluation = evaluation,
                             .placement = pipeline.partition().placement});
    const double ratio = static_cast<double>(ActivationsOnCard(pipeline.backend(k))) /
                         static_cast<double>(forecast.activations - kCardWorkspaceBytes);
    EXPECT_LE(ratio, 1.0) << "stage " << k << " of " << cards.stages << ", seed " << seed;
    EXPECT_GT(ratio, cards.least) << "stage " << k << " of " << cards.stages << ", seed " << seed;
    taken.push_back(ratio);
  }
  return taken;
}

// By stage, the most over schedules, modes and seeds.
std::vector<double> TakenOnCards(const OnCards& cards) {
  std::vector<double> most(static_cast<size_t>(cards.stages), 0.0);
  const size_t layers = ExpandNetwork(cards.spec)->layers.size();
  for (const std::string& schedule : SchedulesFor(layers, cards.stages)) {
    for (const auto mode : {Rematerialization::kAlways, Rematerialization::kNever}) {
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        const std::vector<double> taken = TakenOnCards(cards, schedule, mode, seed);
        for (size_t k = 0; k < taken.size(); ++k) most[k] = std::max(most[k], taken[k]);
      }
    }
  }
  return most;
}

double FullestOnCards(const OnCards& cards) {
  const std::vector<double> taken = TakenOnCards(cards);
  return *std::max_element(taken.begin(), taken.end());
}

TEST(CardForecast, IsReachedButNotExceededOnCards) {
  GptSpec tied = kCardGpt;
  tied.tied_embeddings = true;
  for (const int stages : {1, 2, 3}) {
    EXPECT_GT(FullestOnCards({.spec = kCardGpt, .stages = stages}), 0.95)
        << stages << " stages: what is counted is taken where copies are slow";
    EXPECT_GT(FullestOnCards({.spec = tied, .stages = stages}), 0.9) << stages << " stages, tied";
  }
}

// A vocabulary so large that logits are most of what the last stage would have: the 128 rows of a
// micro-batch are cut into eight. Of 7 stages the last one has the head alone, and the first one an
// embedding, whose ids are little.
TEST(CardForecast, CountsOneChunkOfTheHeadOnCards) {
  GptSpec wide = kCardGpt;
  wide.vocabulary = 512;
  constexpr HeadChunkLimits kSixteenRows{.bytes = 16 * 512 * 4};
  for (const int stages : {3, 7}) {
    for (const bool evaluation : {false, true}) {
      const OnCards chunked{wide, stages, kSixteenRows, evaluation, 0.5};
      EXPECT_GT(TakenOnCards(chunked).back(), 0.95)
          << stages << " stages, " << (evaluation ? "evaluation" : "step");
    }
  }
}

}  // namespace
}  // namespace stagecoach
