// Schedules of pipelines whose first stages train nothing: no backward there, and nothing comes
// back to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/schedules/interpreter_testing.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_kinds.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

ScheduleOptions FromStage(int first_backward, const std::string& kind, Rematerialization mode) {
  return {.kind = kind,
          .rematerialization = mode,
          .stages = 3,
          .micro_batches = 2,
          .first_backward = first_backward};
}

TEST(FrozenSchedule, StagesThatTrainNothingHaveForwardsAlone) {
  EXPECT_EQ(FormatSchedule(MakeSchedule(FromStage(1, "gpipe", Rematerialization::kAlways))),
            "stage 0: in0 F0 >a0 in1 F1 >a1\n"
            "stage 1: <a0 F0 >a0 <a1 F1 >a1 R0 <g0 B0 R1 <g1 B1\n"
            "stage 2: <a0 F0 <a1 F1 R0 t0 L0 B0 >g0 R1 t1 L1 B1 >g1\n");
  EXPECT_EQ(FormatSchedule(
                MakeSchedule(FromStage(2, "one_forward_one_backward", Rematerialization::kNever))),
            "stage 0: in0 F0 >a0 in1 F1 >a1\n"
            "stage 1: <a0 F0 >a0 <a1 F1 >a1\n"
            "stage 2: <a0 F0 t0 L0 B0 <a1 F1 t1 L1 B1\n");
}

TEST(FrozenSchedule, IsAcceptedForEveryKindModeAndCapacityAndKeepsStashesWhereThereIsABackward) {
  for (const std::string& kind : ScheduleNames()) {
    for (const auto mode :
         {Rematerialization::kAlways, Rematerialization::kExceptFirst, Rematerialization::kNever}) {
      for (int stages = 1; stages <= 4; ++stages) {
        const CellPlacement placement = PlacementOf(kind, stages, 0);
        const int cells = placement.empty() ? stages : static_cast<int>(placement.size());
        for (int first = 0; first < cells; ++first) {
          for (const int capacity : {1, 2, 8}) {
            if (!placement.empty() && capacity < kLinkCapacity) continue;
            ScheduleOptions options{
                .kind = kind, .rematerialization = mode, .stages = stages, .micro_batches = 5};
            options.first_backward = first;
            const Schedule schedule = MakeSchedule(options);
            const absl::Status valid = ValidateSchedule(schedule, {.link_capacity = capacity});
            EXPECT_TRUE(valid.ok()) << valid;
            for (int k = 0; k < first; ++k) {
              EXPECT_FALSE(KeepsStash(schedule.programs[StageOf(placement, k)], CellId(k),
                                      MicroBatchId(0)));
            }
          }
        }
      }
    }
  }
}

// A program with an instruction more or less than there should be.
std::string RefusalOf(const std::string& text, int first_backward) {
  Schedule schedule{.options = FromStage(first_backward, "gpipe", Rematerialization::kNever)};
  schedule.options.stages = 2;
  schedule.options.micro_batches = 1;
  schedule.programs = *ParsePrograms(text);
  return std::string(ValidateSchedule(schedule, {}).message());
}

TEST(FrozenSchedule, ABackwardOrAGradientTooManyOrTooFewIsRefused) {
  const std::string last = "stage 1: <a0 F0 t0 L0 B0";
  EXPECT_EQ(RefusalOf("stage 0: in0 F0 >a0\n" + last + "\n", 1), "");
  EXPECT_THAT(RefusalOf("stage 0: in0 F0 >a0 B0\n" + last + "\n", 1),
              HasSubstr("B0: nothing is trained up to this stage"));
  EXPECT_THAT(RefusalOf("stage 0: in0 F0 >a0 <g0\n" + last + " >g0\n", 1),
              HasSubstr("<g0: nothing is trained up to this stage"));
  EXPECT_THAT(RefusalOf("stage 0: in0 F0 >a0\n" + last + " >g0\n", 1),
              HasSubstr(">g0: nothing is trained before this stage"));
  EXPECT_THAT(RefusalOf("stage 0: in0 F0 >a0\n" + last + "\n", 0), HasSubstr("missing"));
}

TEST(FrozenSchedule, TakesTheTimeOfWhatIsComputed) {
  const Schedule schedule = MakeSchedule(FromStage(2, "gpipe", Rematerialization::kNever));
  const std::vector<CellCost> costs(3, {.forward_seconds = 1, .backward_seconds = 2});
  const auto timeline = Simulate(schedule, costs, {}, {});
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_NEAR(timeline->step_seconds, 2 + 2 * 1 + 2 * 2, 1e-2);
  EXPECT_EQ(timeline->busy_seconds, (std::vector<double>{2, 2, 6}));
}

}  // namespace
}  // namespace stagecoach
