// Schedules of stages with several cells: their bubble and memory, with equal cells and free links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/schedules/interpreter_testing.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_kinds.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ScheduleOptions Options(const std::string& kind, int stages, int micro_batches, int each = 0) {
  return {.kind = kind,
          .rematerialization = Rematerialization::kNever,
          .stages = stages,
          .micro_batches = micro_batches,
          .placement = PlacementOf(kind, stages, each)};
}

double BubbleOf(const ScheduleOptions& options) {
  const std::vector<CellCost> costs(static_cast<size_t>(options.cells()),
                                    {.forward_seconds = 1, .backward_seconds = 2});
  const auto timeline = Simulate(MakeSchedule(options), costs, {}, {});
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? timeline->Bubble() : 1;
}

// Seen: zero_bubble_v with recomputation waited for ever from K = 11 on, and from K = 7 with frozen
// layers: a receive stood behind a send that waited for it.
TEST(SeveralCells, NoScheduleWaitsForEver) {
  for (const std::string& kind : {"interleaved", "breadth_first", "zero_bubble_v", "v_min"}) {
    for (int stages = 2; stages <= 13; ++stages) {
      for (const int micro_batches : {1, stages - 1, stages, 2 * stages, 2 * stages + 3, 3 * stages}) {
        for (const int first_backward : {0, stages / 2, stages}) {
          for (const bool forward_only : {false, true}) {
            for (const auto mode : {Rematerialization::kAlways, Rematerialization::kNever}) {
              ScheduleOptions options = Options(kind, stages, micro_batches);
              options.first_backward = first_backward;
              options.forward_only = forward_only;
              options.rematerialization = mode;
              const absl::Status status = ValidateSchedule(MakeSchedule(options), {});
              ASSERT_TRUE(status.ok()) << kind << ", K = " << stages << ", M = " << micro_batches
                                       << ", first backward " << first_backward << ": " << status;
            }
          }
        }
      }
    }
  }
}

// Of a stage, cells times micro-batches that are stashed or put off.
int MostHeld(const Schedule& schedule) {
  int most = 0;
  for (const StageProgram& program : schedule.programs) {
    int held = 0;
    for (const Instruction& instruction : program.instructions) {
      if (instruction.op == Opcode::kForward) most = std::max(most, ++held);
      held -= instruction.op == Opcode::kBackward || instruction.op == Opcode::kBackwardWeight;
    }
  }
  return most;
}

TEST(CellPlacement, GoesInALoopOrDownAndUp) {
  EXPECT_THAT(LoopPlacement(3, 1), IsEmpty());
  EXPECT_THAT(LoopPlacement(3, 2), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(VPlacement(3), ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_THAT(CellsOf(VPlacement(3), 0), ElementsAre(0, 5));
  EXPECT_THAT(CellsOf({}, 2), ElementsAre(2));
}

TEST(ScheduleCells, InterleavedAndBreadthFirstHaveAsMuchLessBubbleAsTheyHaveCells) {
  for (const auto& [stages, micro_batches] : {std::pair(4, 16), std::pair(8, 32)}) {
    for (const int each : {2, 4}) {
      for (const char* const kind : {"interleaved", "breadth_first"}) {
        const ScheduleOptions options = Options(kind, stages, micro_batches, each);
        const double ideal = (stages - 1.0) / (each * micro_batches + stages - 1.0);
        EXPECT_NEAR(IdealBubble(options), ideal, 1e-12);
        EXPECT_NEAR(BubbleOf(options), ideal, 1e-9) << kind << " " << stages << " " << each;
      }
    }
  }
}

TEST(ScheduleCells, InterleavedTakesAnyNumberOfMicroBatches) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 24; ++micro_batches) {
      const ScheduleOptions options = Options("interleaved", stages, micro_batches, 3);
      const double bubble = BubbleOf(options);
      if (micro_batches < stages) continue;  // nobody can be busy all the time
      EXPECT_LT(bubble, IdealBubble(options) + 0.02) << stages << " " << micro_batches;
    }
  }
}

TEST(ScheduleCells, ZeroBubbleVWaitsForTheFirstForwardsAloneInTheMemoryOf1F1B) {
  for (const auto& [stages, micro_batches] : {std::pair(4, 16), std::pair(8, 32)}) {
    const ScheduleOptions options = Options("zero_bubble_v", stages, micro_batches);
    const double ideal = (stages - 1.0) / (6 * micro_batches + stages - 1.0);
    EXPECT_NEAR(IdealBubble(options), ideal, 1e-12);
    EXPECT_NEAR(BubbleOf(options), ideal, 0.01) << stages;
    // Each is half as large as one of a stage with one cell.
    EXPECT_EQ(MostHeld(MakeSchedule(options)), 2 * stages);
  }
}

// By the paper a third of 1F1B's in the limit, (K + 4) / 3 of K.
TEST(ScheduleCells, VMinHoldsAboutAThirdAndWaitsLessThan1F1B) {
  for (const int stages : {4, 8, 16, 32}) {
    const ScheduleOptions options = Options("v_min", stages, 4 * stages);
    EXPECT_LE(MostHeld(MakeSchedule(options)), 2 * (stages + 4) / 3 + 2) << stages;
    EXPECT_DOUBLE_EQ(IdealBubble(options), BubbleOf(options));
    EXPECT_LT(BubbleOf(options), 0.75 * IdealBubble({.stages = stages, .micro_batches = 4 * stages}))
        << stages;
  }
}

// Published: Narayanan et al., figure 4; Lamy-Poirier, figure 2.
TEST(ScheduleCells, OrdersAreThePublishedOnes) {
  const auto works = [](const char* kind, int stage) {
    std::string text;
    const std::vector<std::vector<StageWork>> orders =
        ScheduleKinds().Named(kind).Orders(Options(kind, 2, 4));
    for (const StageWork& work : orders[static_cast<size_t>(stage)]) {
      absl::StrAppend(&text, text.empty() ? "" : " ", work.op == Opcode::kForward ? "F" : "B",
                      work.chunk, ".", work.micro_batch);
    }
    return text;
  };
  EXPECT_EQ(works("interleaved", 0),
            "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
  EXPECT_EQ(works("interleaved", 1),
            "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
  EXPECT_EQ(works("breadth_first", 0),
            "F0.0 F0.1 F0.2 F0.3 F1.0 F1.1 F1.2 F1.3 B1.0 B1.1 B1.2 B1.3 B0.0 B0.1 B0.2 B0.3");
}

TEST(ScheduleCells, BetweenCellsOfAStageNothingIsSent) {
  EXPECT_EQ(FormatSchedule(MakeSchedule(Options("zero_bubble_v", 1, 1))),
            "stage 0: in0.0 F0.0 F1.0 t1.0 L1.0 I1.0 I0.0 W1.0 W0.0\n");
  const Schedule schedule = MakeSchedule(Options("zero_bubble_v", 2, 1));
  EXPECT_EQ(FormatSchedule(schedule),
            "stage 0: in0.0 F0.0 >a0.0 <a3.0 F3.0 t3.0 L3.0 I3.0 >g3.0 W3.0 <g0.0 I0.0 W0.0\n"
            "stage 1: <a1.0 F1.0 F2.0 >a2.0 <g2.0 I2.0 I1.0 >g1.0 W2.0 W1.0\n");
  EXPECT_TRUE(Interpreter(schedule, 2).Run().has_value());
}

std::string RefusalOf(const std::string& stage1) {
  Schedule schedule = MakeSchedule(Options("zero_bubble_v", 2, 1));
  schedule.programs[1] =
      (*ParsePrograms("stage 0: in0.0\nstage 1: " + stage1, /*with_cells=*/true))[1];
  return std::string(ValidateSchedule(schedule, {}).message());
}

TEST(ScheduleCells, WhatIsMissingOrInAnotherPlaceIsRefused) {
  EXPECT_EQ(RefusalOf("<a1.0 F1.0 F2.0 >a2.0 <g2.0 I2.0 I1.0 >g1.0 W2.0 W1.0"), "");
  EXPECT_THAT(RefusalOf("<a1.0 F2.0"), HasSubstr("F2.0: its input is not there yet"));
  EXPECT_THAT(RefusalOf("<a1.0 F1.0 >a1.0"),
              HasSubstr(">a1.0: cell 2 is on this stage too: between them nothing is sent"));
  EXPECT_THAT(RefusalOf("<a1.0 F1.0 F3.0"), HasSubstr("F3.0: cell 3 is on stage 0"));
  EXPECT_THAT(RefusalOf("<a1.0 F1.0 F7.0"), HasSubstr("F7.0: cells count from 0 to 3"));
  EXPECT_THAT(RefusalOf("<a1.0 F1.0 F2.0 >a2.0 <g2.0 I1.0"),
              HasSubstr("I1.0: its gradient is not there yet"));
  EXPECT_THAT(RefusalOf("<a1.0 F1.0 F2.0 >a2.0 <g2.0 I2.0 I1.0 >g1.0 W2.0"),
              HasSubstr("W1.0 is missing"));
  EXPECT_THAT(RefusalOf("<a1.0 F1.0 F2.0 <g2.0 I2.0 >a2.0 I1.0 >g1.0 W2.0 W1.0"),
              HasSubstr("deadlock"));
}

TEST(ScheduleCells, APlacementThatDoesNotFitIsRefused) {
  Schedule schedule = MakeSchedule(Options("interleaved", 2, 2));
  schedule.options.placement = {0, 0, 0, 0};
  EXPECT_THAT(std::string(ValidateSchedule(schedule, {}).message()),
              HasSubstr("stage 1 has no cell"));
  schedule.options.placement = {0, 1, 2, 1};
  EXPECT_THAT(std::string(ValidateSchedule(schedule, {}).message()),
              HasSubstr("cell 2 is on stage 2"));
}

TEST(ScheduleCells, TextsWithoutTheirCellsAreRefused) {
  EXPECT_FALSE(ParsePrograms("stage 0: F0\nstage 1: F0", true).ok());
  EXPECT_FALSE(ParsePrograms("stage 0: F0.0\nstage 1: F1.0").ok());
  EXPECT_TRUE(ParsePrograms("stage 0: F0.0 >v0\nstage 1: F1.0 <c3", true).ok());
}

}  // namespace
}  // namespace stagecoach
