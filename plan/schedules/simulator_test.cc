// Protects the forecast: exact times of hand-made pipelines, and the paper's bubble.
#include "plan/schedules/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <limits>
#include <random>

#include "base/sanitized.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Timeline Simulated(const Schedule& schedule, const std::vector<CellCost>& costs,
                   const LinkCost& link, const PipelineLimits& limits = {}) {
  const auto timeline = Simulate(schedule, costs, link, limits);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : Timeline{};
}

double EndOf(const Timeline& timeline, int stage, const Instruction& instruction) {
  for (const TimelineEvent& event : timeline.events) {
    if (event.stage == StageId(stage) && event.instruction == instruction) return event.end_seconds;
  }
  ADD_FAILURE() << "no " << FormatInstruction(instruction) << " on stage " << stage;
  return 0;
}

TEST(Simulator, EqualStagesTakeThePapersTime) {
  constexpr double kForward = 1.0, kBackward = 2.0;
  for (const std::string& kind : ScheduleNames()) {
    for (int k = 1; k <= 8; ++k) {
      for (int m = 1; m <= 12; ++m) {
        const std::vector<CellCost> costs(
            k, {.forward_seconds = kForward, .backward_seconds = kBackward});
        if (kind.starts_with("zero_bubble")) continue;
        if (ScheduleKinds().Named(kind).cells_per_stage().usual > 1) continue;
        const Timeline timeline =
            Simulated(MakeSchedule({kind, Rematerialization::kNever, k, m}), costs, {});
        EXPECT_EQ(timeline.step_seconds, (m + k - 1) * (kForward + kBackward)) << k << " " << m;
        EXPECT_DOUBLE_EQ(timeline.Bubble(), (k - 1.0) / (m + k - 1.0));
      }
    }
  }
}

// The last stage cannot begin before K - 1 forwards, and then works without a pause: no schedule
// takes less.
TEST(Simulator, ZeroBubbleWaitsForTheFirstForwardsAndNothingElse) {
  for (const char* const kind : {"zero_bubble", "zero_bubble_2"}) {
    for (int k = 1; k <= 8; ++k) {
      for (int m = 1; m <= 24; ++m) {
        const ScheduleOptions options{kind, Rematerialization::kNever, k, m};
        const std::vector<CellCost> costs(k, {.forward_seconds = 1, .backward_seconds = 2});
        const Timeline timeline = Simulated(MakeSchedule(options), costs, {});
        if (m >= k) {
          EXPECT_EQ(timeline.step_seconds, 3 * m + k - 1) << kind << " " << k << " " << m;
          EXPECT_NEAR(timeline.Bubble(), IdealBubble(options), 1e-12) << k << " " << m;
        }
        EXPECT_LE(timeline.step_seconds, 3 * (m + k - 1)) << "never more than without it";
      }
    }
  }
}

// Up to the time of a forward, a message's way costs a step the fill and the drain of it alone.
TEST(Simulator, ZeroBubble2HidesSlowLinks) {
  for (int k = 2; k <= 8; ++k) {
    for (const double latency : {0.25, 0.5, 1.0}) {
      const std::vector<CellCost> costs(k, {.forward_seconds = 1, .backward_seconds = 2});
      const auto seconds = [&](const char* kind) {
        return Simulated(MakeSchedule({kind, Rematerialization::kNever, k, 4 * k}), costs,
                         {.latency_seconds = latency})
            .step_seconds;
      };
      EXPECT_LE(seconds("zero_bubble_2"), 13 * k - 1 + (k - 1) * latency) << k << " " << latency;
      EXPECT_LT(seconds("zero_bubble_2"), seconds("zero_bubble")) << k << " " << latency;
    }
  }
}

TEST(Simulator, RecomputeHidesInTheWaitForTheGradient) {
  // GPipe's point: only the last stage's first recompute is on the critical path of the fill.
  const ScheduleOptions options{.stages = 4, .micro_batches = 8};
  const std::vector<CellCost> costs(
      4, {.forward_seconds = 1, .backward_seconds = 2, .recompute_seconds = 1});
  const Timeline timeline = Simulated(MakeSchedule(options), costs, {});
  // The stage before the last fills K - 2 + M, then (R + B) M on the last one, whose forwards
  // compute nothing, and the drain of K - 1 backwards.
  EXPECT_EQ(timeline.step_seconds, (4 - 2 + 8) * 1 + 8 * 3 + (4 - 1) * 2);
  EXPECT_THAT(timeline.busy_seconds, ElementsAre(32, 32, 32, 24));
}

TEST(Simulator, MessagesShareTheWireAndArriveALatencyLater) {
  const Schedule schedule = MakeSchedule({.stages = 2, .micro_batches = 2, .forward_only = true});
  std::vector<CellCost> costs(2,
                               {.forward_seconds = 1, .loss_seconds = 0.25, .load_seconds = 0.5});
  costs[0].activation_bytes = 400;
  const Timeline timeline =
      Simulated(schedule, costs, {.bytes_per_second = 100, .latency_seconds = 0.125});
  // in0 0.5, F0 1.5, wire until 5.5; in1 2, F1 3, the wire is free at 5.5, until 9.5.
  EXPECT_EQ(EndOf(timeline, 1, {Opcode::kReceiveActivation, MicroBatchId(0), CellId(1)}), 5.625);
  EXPECT_EQ(EndOf(timeline, 1, {Opcode::kReceiveActivation, MicroBatchId(1), CellId(1)}), 9.625);
  EXPECT_EQ(timeline.step_seconds, 9.625 + 1 + 0.5 + 0.25);
  EXPECT_THAT(timeline.busy_seconds, ElementsAre(2, 2.5)) << "loading is not busy";
}

TEST(Simulator, ASendWaitsOnlyForRoomInItsLink) {
  const Schedule schedule = MakeSchedule({.stages = 2, .micro_batches = 4, .forward_only = true});
  const std::vector<CellCost> costs = {{.forward_seconds = 1}, {.forward_seconds = 10}};
  const Timeline one = Simulated(schedule, costs, {}, {.link_capacity = 1});
  // Message 0 is taken at 1, message 1 at 11, message 2 at 21.
  EXPECT_EQ(EndOf(one, 0, {Opcode::kSendActivation, MicroBatchId(0)}), 1);
  EXPECT_EQ(EndOf(one, 0, {Opcode::kSendActivation, MicroBatchId(1)}), 2);
  EXPECT_EQ(EndOf(one, 0, {Opcode::kSendActivation, MicroBatchId(2)}), 11);
  EXPECT_EQ(EndOf(one, 0, {Opcode::kSendActivation, MicroBatchId(3)}), 21);
  const Timeline two = Simulated(schedule, costs, {}, {.link_capacity = 2});
  EXPECT_EQ(EndOf(two, 0, {Opcode::kSendActivation, MicroBatchId(2)}), 3);
  EXPECT_EQ(EndOf(two, 0, {Opcode::kSendActivation, MicroBatchId(3)}), 11);
  EXPECT_EQ(one.step_seconds, 41);
}

TEST(Simulator, GradientsHaveTheSizeOfTheBoundaryTheyCross) {
  const Schedule schedule = MakeSchedule(
      {.rematerialization = Rematerialization::kNever, .stages = 2, .micro_batches = 1});
  const std::vector<CellCost> costs = {
      {.backward_seconds = 1, .activation_bytes = 300, .gradient_bytes = 200},
      {.backward_seconds = 1, .activation_bytes = 7000, .gradient_bytes = 7000}};
  EXPECT_EQ(Simulated(schedule, costs, {.bytes_per_second = 100}).step_seconds, 3 + 1 + 2 + 1);
}

TEST(Simulator, PartsOfASplitBackwardTakeHalfEach) {
  const auto programs = ParsePrograms("stage 0: in0 F0 t0 L0 I0 W0");
  const Timeline timeline = Simulated({{.stages = 1, .micro_batches = 1}, *programs},
                                      {{.forward_seconds = 1, .backward_seconds = 3}}, {});
  EXPECT_EQ(timeline.step_seconds, 4);
  EXPECT_EQ(EndOf(timeline, 0, {Opcode::kBackwardInput, MicroBatchId(0)}), 2.5);
}

TEST(Simulator, TimelineFollowsTheProgramsWithoutGapsOrOverlaps) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.1, 3);
  for (int round = 0; round < 200; ++round) {
    const int k = 1 + static_cast<int>(random() % 5), m = 1 + static_cast<int>(random() % 6);
    const Schedule schedule = MakeSchedule({ScheduleNames().at(random() % ScheduleNames().size()),
                                            static_cast<Rematerialization>(random() % 3), k, m});
    std::vector<CellCost> costs;
    for (int i = 0; i < schedule.options.cells(); ++i) {
      costs.push_back(
          {seconds(random), seconds(random), seconds(random), seconds(random), 0.01, 100});
    }
    const LinkCost link{.bytes_per_second = 100 / seconds(random), .latency_seconds = 0.2};
    const Timeline timeline = Simulated(schedule, costs, link, {.link_capacity = kLinkCapacity});
    size_t next = 0;
    double longest = 0;
    for (const StageProgram& program : schedule.programs) {
      double now = 0;
      for (const Instruction& instruction : program.instructions) {
        const TimelineEvent& event = timeline.events[next++];
        ASSERT_EQ(event.instruction, instruction);
        ASSERT_EQ(event.start_seconds, now);
        ASSERT_GE(event.end_seconds, event.start_seconds);
        now = event.end_seconds;
      }
      longest = std::max(longest, now);
    }
    ASSERT_EQ(next, timeline.events.size());
    ASSERT_EQ(timeline.step_seconds, longest);
    for (double busy : timeline.busy_seconds) ASSERT_LE(busy, longest + 1e-9);
    // More room can only help.
    ASSERT_LE(Simulated(schedule, costs, link, {.link_capacity = 4}).step_seconds, longest + 1e-9);
  }
}

TEST(Simulator, TakesALargePipelineQuickly) {
  const Schedule schedule =
      MakeSchedule({.kind = "one_forward_one_backward", .stages = 128, .micro_batches = 512});
  const std::vector<CellCost> costs(128, {.forward_seconds = 1, .backward_seconds = 2});
  const std::clock_t start = std::clock();  // of this process: others may keep the machine busy
  const Timeline timeline = Simulated(schedule, costs, {});
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(timeline.step_seconds, (512 + 128 - 1) * 3);
  EXPECT_LT(took, kSanitized ? 60 : 2) << "a linear walk takes a fraction of this";
}

TEST(Simulator, RefusesCostsThatAreNoTimes) {
  const Schedule schedule = MakeSchedule({.stages = 2, .micro_batches = 2});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto error = [&](const std::vector<CellCost>& costs, const LinkCost& link) {
    return std::string(Simulate(schedule, costs, link, {}).status().message());
  };
  EXPECT_THAT(error({{}}, {}), HasSubstr("1 costs for 2 cells"));
  EXPECT_THAT(error({{}, {.forward_seconds = nan}}, {}), HasSubstr("costs of cell 1"));
  EXPECT_THAT(error({{.backward_seconds = -1}, {}}, {}), HasSubstr("costs of cell 0"));
  EXPECT_THAT(error({{}, {}}, {.bytes_per_second = 0}), HasSubstr("bytes_per_second > 0"));
  EXPECT_THAT(error({{}, {}}, {.latency_seconds = nan}), HasSubstr("latency_seconds >= 0"));
  Schedule broken = schedule;
  broken.programs[0].instructions.pop_back();
  EXPECT_FALSE(Simulate(broken, std::vector<CellCost>(2), {}, {}).ok());
}

TEST(IdealBubble, IsWhatFillingAndDrainingCost) {
  EXPECT_DOUBLE_EQ(IdealBubble({.stages = 4, .micro_batches = 8}), 3.0 / 11);
  EXPECT_EQ(IdealBubble({.stages = 1, .micro_batches = 8}), 0);
  ScheduleOptions filled{.kind = "zero_bubble", .stages = 4, .micro_batches = 8};
  EXPECT_DOUBLE_EQ(IdealBubble(filled), 3.0 / 11) << "nothing is put off where it is recomputed";
  filled.rematerialization = Rematerialization::kNever;
  EXPECT_DOUBLE_EQ(IdealBubble(filled), 3.0 / 27);
  filled.kind = "zero_bubble_2";
  EXPECT_DOUBLE_EQ(IdealBubble(filled), 3.0 / 27);
}

TEST(Simulator, AStepWithoutAnyTimeHasNoBubble) {
  const Timeline timeline =
      Simulated(MakeSchedule({.stages = 2, .micro_batches = 2}), std::vector<CellCost>(2), {});
  EXPECT_EQ(timeline.Bubble(), 0);
}

}  // namespace
}  // namespace stagecoach
