// Protects the plan as a whole: what users see in `stagecoach plan` and what placement relies on.
#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <sstream>

#include "base/errors/status.h"
#include "base/golden_testing.h"
#include "base/sanitized.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/costs/host_memory.h"
#include "plan/costs/small_tensors.h"
#include "plan/data/text.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobSpec Spec() {
  JobSpec spec;
  spec.name = "plan";
  spec.network = GptSpec{.layers = 2, .width = 64, .heads = 2, .context = 32, .vocabulary = 256};
  spec.data = TextData{.path = "input.txt"};
  spec.training.steps = 10;
  spec.training.batch_size = 8;
  spec.training.micro_batches = 4;
  return spec;
}

absl::StatusOr<Plan> MakePlan(const JobSpec& spec, int stages, const PlanAssumptions& assumptions,
                              std::span<const LayerProfile> profile) {
  ASSIGN_OR_RETURN(const Network network, ExpandJob(spec));
  return MakePlan(spec, network, stages, assumptions, profile);
}

Plan Planned(const JobSpec& spec, int stages, const std::vector<LayerProfile>& profile = {}) {
  const auto plan = MakePlan(spec, stages, {}, profile);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan{};
}

std::string ErrorOf(const JobSpec& spec, int stages, const PlanAssumptions& assumptions = {},
                    const std::vector<LayerProfile>& profile = {}) {
  const auto plan = MakePlan(spec, stages, assumptions, profile);
  EXPECT_FALSE(plan.ok());
  return std::string(plan.status().message());
}

TEST(MakePlan, CoversEveryLayerOnce) {
  for (int stages = 1; stages <= 7; ++stages) {
    const Plan plan = Planned(Spec(), stages);
    ASSERT_EQ(plan.stages.size(), static_cast<size_t>(stages));
    int next = 0;
    for (const StagePlan& stage : plan.stages) {
      ASSERT_EQ(stage.cells.size(), 1u);
      EXPECT_EQ(stage.cells[0].first, next);
      EXPECT_GT(stage.cells[0].last, next);
      EXPECT_GT(stage.memory.total(), 0);
      next = stage.cells[0].last;
    }
    EXPECT_EQ(next, 7);
    EXPECT_DOUBLE_EQ(plan.bubble_ideal, (stages - 1) / (4.0 + stages - 1));
    EXPECT_TRUE(ValidateSchedule(plan.schedule, {}).ok());
    EXPECT_GT(plan.step_seconds, 0);
  }
}

// Activations without what kernels take beside them, which is not half as much in bfloat16.
double OfTensors(const JobSpec& spec, const StagePlan& stage) {
  const Network network = *ExpandJob(spec);
  const int64_t samples = MicroBatchSize(spec.training.batch_size, spec.training.micro_batches, 0);
  const KernelWorkspace workspace =
      HostWorkspace(network, stage.cells[0].first, stage.cells[0].last, samples, {});
  const int64_t small = SmallTensorBytes(network, stage.cells[0].first, stage.cells[0].last,
                                         spec.training.micro_batches, spec.training.optimizer);
  return static_cast<double>(stage.memory.activations - workspace.room - workspace.shared - small);
}

TEST(MakePlan, CountsInThePrecisionOfTheJob) {
  JobSpec narrow = Spec();
  narrow.precision = Precision::kBfloat16;
  narrow.pipeline.partition = {PartitionSpec::Kind::kUniform, {}};
  JobSpec single = narrow;
  single.precision = Precision::kFloat32;
  const Plan half = Planned(narrow, 2), whole = Planned(single, 2);
  EXPECT_EQ(half.precision, Precision::kBfloat16);
  EXPECT_EQ(whole.precision, Precision::kFloat32);
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(2 * half.stages[k].memory.parameters, 3 * whole.stages[k].memory.parameters);
    EXPECT_EQ(half.stages[k].memory.gradients, whole.stages[k].memory.gradients);
    EXPECT_EQ(half.stages[k].memory.optimizer, whole.stages[k].memory.optimizer);
    EXPECT_LT(OfTensors(narrow, half.stages[k]), 0.6 * OfTensors(single, whole.stages[k]));
  }
  EXPECT_LT(half.step_seconds, whole.step_seconds) << "half the bytes between the stages";
}

TEST(MakePlan, FollowsAMeasuredProfile) {
  // The last layer is slow here, whatever its shapes say.
  std::vector<LayerProfile> profile(7, {.forward_seconds = 1, .backward_seconds = 2});
  profile[6] = {.forward_seconds = 6, .backward_seconds = 12};
  const Plan plan = Planned(Spec(), 2, profile);
  EXPECT_THAT(plan.partition.first_layers, ElementsAre(0, 6));
  EXPECT_EQ(plan.stages[0].forward_seconds, 6);
  EXPECT_EQ(plan.stages[1].backward_seconds, 12);
}

TEST(MakePlan, SaysWhereItsTimesComeFrom) {
  const Plan assumed = Planned(Spec(), 2);
  EXPECT_EQ(assumed.rate_source, RateSource::kAssumed);
  EXPECT_EQ(assumed.flops_per_second, kAssumedFlopsPerSecond);
  const auto given = MakePlan(Spec(), 2, {.flops_per_second = kAssumedFlopsPerSecond / 2}, {});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->rate_source, RateSource::kGiven);
  EXPECT_EQ(given->flops_per_second, kAssumedFlopsPerSecond / 2);
  EXPECT_GT(given->step_seconds, assumed.step_seconds);
  const std::vector<LayerProfile> profile(assumed.layers.size(), {1, 2});
  EXPECT_EQ(Planned(Spec(), 2, profile).rate_source, RateSource::kProfile);
}

// Knowing which stages recompute must never make a step slower than not knowing it.
TEST(MakePlan, TakesThePartitionWithTheFasterForecast) {
  JobSpec spec = Spec();
  spec.pipeline.schedule = "one_forward_one_backward";
  spec.pipeline.rematerialization = Rematerialization::kAlways;
  bool differed = false;
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int stages = 2 + round % 3;
    std::vector<LayerProfile> profile;
    std::vector<double> alike;
    for (int i = 0; i < 7; ++i) {
      const double forward = 1 + static_cast<double>(random() % 8);
      profile.push_back({.forward_seconds = forward, .backward_seconds = 2 * forward});
      alike.push_back(4 * forward);
    }
    const Plan automatic = Planned(spec, stages, profile);
    JobSpec fixed = spec;
    fixed.pipeline.stages = stages;
    fixed.pipeline.partition.kind = PartitionSpec::Kind::kCuts;
    const Partition partition = *MinimizeSlowest(alike, stages);
    fixed.pipeline.partition.cuts.assign(partition.first_layers.begin() + 1,
                                         partition.first_layers.end());
    const Plan blind = Planned(fixed, stages, profile);
    EXPECT_LE(automatic.step_seconds, blind.step_seconds);
    differed = differed || automatic.step_seconds < blind.step_seconds;
  }
  EXPECT_TRUE(differed) << "and sometimes it makes it faster";
}

TEST(MakePlan, OfEqualStagesForecastsTheIdealBubble) {
  JobSpec spec = Spec();
  spec.pipeline.rematerialization = Rematerialization::kNever;
  std::vector<LayerProfile> profile(7, {.forward_seconds = 1, .backward_seconds = 2});
  profile[6] = {};  // six equal layers over three stages
  for (const std::string& kind : ScheduleNames()) {
    spec.pipeline.schedule = kind;
    if (kind == "zero_bubble_v") continue;  // of so few micro-batches it is longer by a forward
    const Plan plan = Planned(spec, 3, profile);
    EXPECT_NEAR(plan.bubble, plan.bubble_ideal, 1e-3) << "links cost next to nothing here";
    EXPECT_NEAR(plan.step_seconds, 4 * 6 / (1 - plan.bubble_ideal), 0.05);
  }
}

TEST(MakePlan, TakesCutsAndUniformAsTold) {
  JobSpec spec = Spec();
  spec.pipeline.partition.kind = PartitionSpec::Kind::kUniform;
  EXPECT_THAT(Planned(spec, 3).partition.first_layers, ElementsAre(0, 3, 5));
  spec.pipeline.stages = 3;
  spec.pipeline.partition = {.kind = PartitionSpec::Kind::kCuts, .cuts = {1, 2}};
  EXPECT_THAT(Planned(spec, 3).partition.first_layers, ElementsAre(0, 1, 2));
  EXPECT_THAT(ErrorOf(spec, 2),
              HasSubstr("pipeline.partition.cuts: 2 cuts; must be 1 for 2 cells"));
}

TEST(MakePlan, SaysWhatDoesNotFitAndWhatHelps) {
  const auto plan = MakePlan(Spec(), 2, {.stage_memory_limit_bytes = 100'000}, {});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("plan: stage 0 with layers [0, "));
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("a stage has 0.1 MiB (--memory-per-stage, or --memory-limit-bytes of "
                        "the stage servers); use"));
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("use more stages"));
  EXPECT_TRUE(MakePlan(Spec(), 2, {.stage_memory_limit_bytes = int64_t{1} << 30}, {}).ok());
}

// Time alone would put all layers but the last one on stage 0.
TEST(MakePlan, TakesTheFastestPartitionThatFits) {
  std::vector<LayerProfile> profile(7, {.forward_seconds = 1, .backward_seconds = 2});
  profile[6] = {.forward_seconds = 6, .backward_seconds = 12};
  const auto planned = [&profile](const JobSpec& spec, int64_t limit) {
    return MakePlan(spec, 2, {.stage_memory_limit_bytes = limit}, profile);
  };
  const auto fullest = [](const Plan& plan) {
    return std::max(plan.stages[0].memory.total(), plan.stages[1].memory.total());
  };
  JobSpec fixed = Spec();
  fixed.pipeline.stages = 2;
  std::vector<Plan> by_cut;  // layers 0 to i on stage 0
  for (int64_t cut = 1; cut < 7; ++cut) {
    fixed.pipeline.partition = {PartitionSpec::Kind::kCuts, {cut}};
    by_cut.push_back(*planned(fixed, 0));
  }
  ASSERT_EQ(planned(Spec(), 0)->partition, by_cut[5].partition);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Plan& plan : by_cut) least = std::min(least, fullest(plan));
  bool moved = false;
  for (int64_t limit = fullest(by_cut[5]); limit >= least; limit -= kSanitized ? 10'000 : 1000) {
    const auto plan = planned(Spec(), limit);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(fullest(*plan), limit);
    for (const Plan& other : by_cut) {
      if (fullest(other) > limit) continue;
      EXPECT_LE(plan->step_seconds, other.step_seconds);
    }
    moved = moved || plan->partition != by_cut[5].partition;
  }
  EXPECT_TRUE(moved);
  EXPECT_EQ(planned(Spec(), least - 1).status().code(), absl::StatusCode::kResourceExhausted);
  fixed.pipeline.partition = {PartitionSpec::Kind::kCuts, {6}};
  EXPECT_EQ(planned(fixed, fullest(by_cut[5]) - 1).status().code(),
            absl::StatusCode::kResourceExhausted)
      << "cuts that a job gives are its own";
}

// Symptom: zero_bubble keeps more on a stage the further up the first backward is; a search that
// took it to be as far down as it can be found a partition that does not fit, and the job was
// refused though another one did.
TEST(MakePlan, FindsThePartitionThatFitsWhereverItsFirstBackwardIs) {
  JobSpec spec = Spec();
  spec.network = GptSpec{.layers = 3, .width = 16, .heads = 2, .context = 128, .vocabulary = 256};
  spec.training.batch_size = 32;
  spec.training.freeze = {"model/0000/*", "model/0001/*", "model/0002/*"};
  spec.pipeline.schedule = "zero_bubble";
  spec.pipeline.rematerialization = Rematerialization::kNever;
  const auto planned = [](const JobSpec& job, int64_t limit) {
    return MakePlan(job, 3, {.stage_memory_limit_bytes = limit}, {});
  };
  JobSpec fixed = spec;
  fixed.pipeline.stages = 3;
  const auto layers = static_cast<int64_t>(planned(spec, 0)->layers.size());
  std::set<int64_t> limits;  // what the fullest stage has, by cuts
  for (int64_t a = 1; a < layers; ++a) {
    for (int64_t b = a + 1; b < layers; ++b) {
      fixed.pipeline.partition = {PartitionSpec::Kind::kCuts, {a, b}};
      int64_t fullest = 0;
      const absl::StatusOr<Plan> plan = planned(fixed, 0);
      ASSERT_TRUE(plan.ok()) << plan.status();
      for (const StagePlan& stage : plan->stages) {
        fullest = std::max(fullest, stage.memory.total());
      }
      limits.insert(fullest);
    }
  }
  for (const int64_t limit : limits) {
    const absl::Status status = planned(spec, limit).status();
    EXPECT_TRUE(status.ok()) << limit << ": " << status;
  }
  EXPECT_FALSE(planned(spec, *limits.begin() - 1).ok());
}

TEST(MakePlan, CountsWhatACardNeedsForTheStagesOnACardOnly) {
  const CardProfile card;
  const auto memory = [](std::vector<std::optional<CardProfile>> cards) {
    const auto plan = MakePlan(Spec(), 3, {.cards = std::move(cards)}, {});
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::vector<int64_t> totals;
    for (const StagePlan& stage : plan->stages) totals.push_back(stage.memory.total());
    return totals;
  };
  const std::vector<int64_t> none = memory({}), second = memory({std::nullopt, card});
  EXPECT_EQ(memory({std::nullopt, std::nullopt, std::nullopt, card}), none);
  EXPECT_EQ(second[0], none[0]);
  EXPECT_GT(second[1], int64_t{32} << 20);
  EXPECT_LT(none[1], int64_t{2} << 20);
  EXPECT_EQ(second[2], none[2]) << "like one that is not named";
  EXPECT_EQ(
      MakePlan(Spec(), 2, {.stage_memory_limit_bytes = int64_t{32} << 20, .cards = {card}}, {})
          .status()
          .code(),
      absl::StatusCode::kResourceExhausted)
      << "the workspace alone takes it";
}

// A stage loads every list of its layers, and the last one the loss.
TEST(MakePlan, RefusesAStageThatHasNoKernelForACallOfItsOwn) {
  const auto error = [](const JobSpec& spec, const std::vector<std::string>& first,
                        const std::vector<std::string>& last) {
    PlanAssumptions assumptions;
    assumptions.kernels = {{"a", "cpu", first}, {"b", "cuda:1", last}};
    const absl::StatusOr<Plan> plan = MakePlan(spec, 2, assumptions, {});
    EXPECT_TRUE(plan.ok() || absl::IsFailedPrecondition(plan.status())) << plan.status();
    return std::string(plan.status().message());
  };
  EXPECT_EQ(error(Spec(), {}, {"max_pool"}), "");
  EXPECT_THAT(error(Spec(), {}, {"linear_weight_gradient"}),
              AllOf(HasSubstr("plan: stage 1 (b, device cuda:1) has no kernel for operation "
                              "\"linear_weight_gradient\" of layer "),
                    HasSubstr("use stages with another device, or a job without this operation")));
  EXPECT_EQ(error(Spec(), {"cross_entropy"}, {}), "") << "the last stage computes the loss";
  EXPECT_THAT(error(Spec(), {}, {"cross_entropy"}), HasSubstr("\"cross_entropy\" of the loss"));
  EXPECT_THAT(error(Spec(), {"adamw_update"}, {}),
              AllOf(HasSubstr("stage 0 (a, device cpu)"), HasSubstr("of training.optimizer")));
  EXPECT_EQ(error(Spec(), {"average_update"}, {}), "");
  JobSpec averaged = Spec();
  averaged.training.average.decay = 0.9;
  EXPECT_THAT(error(averaged, {"average_update"}, {}), HasSubstr("of training.average"));
}

TEST(MakePlan, RefusesWhatCannotBe) {
  EXPECT_THAT(ErrorOf(Spec(), 8), HasSubstr("pipeline.stages: 8; the model has 7 layers"));
  EXPECT_THAT(ErrorOf(Spec(), 0), HasSubstr("pipeline.stages: 0; must be >= 1"));
  EXPECT_THAT(ErrorOf(Spec(), 2, {.flops_per_second = 0}), HasSubstr("flops_per_second"));
  EXPECT_THAT(ErrorOf(Spec(), 2, {.link_bytes_per_second = -1}), HasSubstr("bytes_per_second"));
  EXPECT_THAT(ErrorOf(Spec(), 2, {}, {{1, 1}}), HasSubstr("the profile has 1 layers, the model 7"));
  std::vector<LayerProfile> profile(7);
  profile[3].backward_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ErrorOf(Spec(), 2, {}, profile), HasSubstr("profile of layer 3"));
  JobSpec spec = Spec();
  spec.training.micro_batches = 9;
  EXPECT_THAT(ErrorOf(spec, 2), HasSubstr("training.micro_batches: 9"));
}

Timeline SmallTimeline() {
  const Schedule schedule = MakeSchedule({.stages = 3, .micro_batches = 4});
  const std::vector<CellCost> costs(
      3, {.forward_seconds = 1, .backward_seconds = 2, .recompute_seconds = 1});
  return *Simulate(schedule, costs, {}, {});
}

TEST(FormatTimeline, DrawsALaneAStage) {
  ExpectGolden("timeline.txt", FormatTimeline(SmallTimeline(), 80));
}

TEST(FormatTimeline, KeepsToTheWidth) {
  for (int width : {30, 40, 77, 100, 200}) {
    std::istringstream lines(FormatTimeline(SmallTimeline(), width));
    std::string line;
    while (std::getline(lines, line)) EXPECT_LE(static_cast<int>(line.size()), width) << line;
  }
}

TEST(FormatTimeline, DrawsEvenWhereThereIsNothingOrNoRoom) {
  EXPECT_FALSE(FormatTimeline(SmallTimeline(), 0).empty());
  EXPECT_FALSE(FormatTimeline(Timeline{}, 80).empty());
  const auto still =
      Simulate(MakeSchedule({.stages = 2, .micro_batches = 1}), std::vector<CellCost>(2), {}, {});
  EXPECT_THAT(FormatTimeline(*still, 40), HasSubstr("stage 1 |....."));
}

// Symptom: where a character stood for several micro-batches, rounding gave some stages only
// recomputation and others only backwards.
TEST(FormatTimeline, ACharacterIsWhatTakesMostOfItsTime) {
  const std::vector<CellCost> costs(
      2, {.forward_seconds = 1, .backward_seconds = 2, .recompute_seconds = 1});
  const auto timeline = Simulate(MakeSchedule({.stages = 2, .micro_batches = 200}), costs, {}, {});
  const std::string text = FormatTimeline(*timeline, 60);
  EXPECT_THAT(text, HasSubstr("stage 0 |FFFFFFFFFFFFFBBBBBBBBBBBBBBBBBBBB")) << text;
  EXPECT_THAT(text, HasSubstr("stage 1 |............BBBBBBBBBBBBBBBBBBBB")) << text;
}

TEST(FormatTimeline, OfManyStagesDrawsEveryNth) {
  const auto timeline = Simulate(MakeSchedule({.stages = 128, .micro_batches = 2}),
                                 std::vector<CellCost>(128, {.forward_seconds = 1}), {}, {});
  std::istringstream lines(FormatTimeline(*timeline, 80));
  std::vector<std::string> lanes;
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("stage ")) lanes.push_back(line.substr(0, 9));
  }
  ASSERT_EQ(lanes.size(), 33u);
  EXPECT_EQ(lanes[1], "stage 4  ");
  EXPECT_EQ(lanes[31], "stage 124");
  EXPECT_EQ(lanes[32], "stage 127") << "the last in any case";
}

TEST(PlanLayers, OfAChainGiveAllThatCrossesTheirCuts) {
  const Network network =
      *ExpandNetwork(GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 16});
  const std::vector<LayerPlan> layers = PlanLayers(network);
  const std::vector<LayerCost> costs = ModelCosts(network);
  ASSERT_EQ(layers.size(), 5u);
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool last = i + 1 == layers.size();
    EXPECT_EQ(layers[i].label, network.layers[i].label);
    ASSERT_EQ(layers[i].outputs.size(), 1u);
    EXPECT_EQ(FormatType(layers[i].outputs[0]),
              last ? "activation[n, 4, 16]" : "activation[n, 4, 8]");
    EXPECT_EQ(layers[i].cut_bytes, last ? 4 * 4 * 16 : 4 * 4 * 8);
    EXPECT_EQ(layers[i].own_cut_bytes, layers[i].cut_bytes);
    EXPECT_EQ(layers[i].parameters, costs[i].parameters);
    EXPECT_EQ(layers[i].forward_flops, costs[i].forward_flops);
    EXPECT_EQ(layers[i].backward_flops, costs[i].backward_flops);
  }
}

}  // namespace
}  // namespace stagecoach
