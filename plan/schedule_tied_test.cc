// Schedules of pipelines with tied parameters: values come down first, gradients go up last.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/plan.h"
#include "plan/schedules/interpreter_testing.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_kinds.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An owner on the first of three stages and a user on the last.
ScheduleOptions FirstToLast() {
  return {.rematerialization = Rematerialization::kNever,
          .stages = 3,
          .micro_batches = 1,
          .tied_cuts = {0, 1},
          .tied_owners = {0}};
}

TEST(TiedSchedule, BringsValuesFirstAndTakesGradientsLast) {
  EXPECT_EQ(FormatSchedule(MakeSchedule(FirstToLast())),
            "stage 0: >v in0 F0 >a0 <g0 B0 <c T\n"
            "stage 1: <v >v <a0 F0 >a0 <g0 B0 >g0 <c >c\n"
            "stage 2: <v <a0 F0 t0 L0 B0 >g0 >c\n");
  ScheduleOptions evaluation = FirstToLast();
  evaluation.forward_only = true;
  EXPECT_EQ(FormatSchedule(MakeSchedule(evaluation)),
            "stage 0: >v in0 F0 >a0\n"
            "stage 1: <v >v <a0 F0 >a0\n"
            "stage 2: <v <a0 F0 t0 L0\n");
  Schedule unchanged = MakeSchedule(evaluation);
  for (StageProgram& program : unchanged.programs) program = WithoutTiedValues(program);
  EXPECT_EQ(FormatSchedule(unchanged),
            "stage 0: in0 F0 >a0\n"
            "stage 1: <a0 F0 >a0\n"
            "stage 2: <a0 F0 t0 L0\n");
  EXPECT_EQ(FormatSchedule(MakeSchedule({.stages = 1, .micro_batches = 1, .tied_owners = {0}})),
            "stage 0: in0 F0 t0 L0 B0 T\n");
}

TEST(TiedSchedule, TextIsReadBack) {
  const Schedule schedule = MakeSchedule(FirstToLast());
  const auto programs = ParsePrograms(FormatSchedule(schedule));
  ASSERT_TRUE(programs.ok()) << programs.status();
  EXPECT_EQ(*programs, schedule.programs);
  for (const char* wrong : {"<v0", "T1", ">c-1", "<", ">v v"}) {
    EXPECT_FALSE(ParsePrograms(std::string("stage 0: ") + wrong).ok()) << wrong;
  }
}

TEST(TiedSchedule, IsAcceptedAndRunsToItsEndForEveryKindModeAndCapacity) {
  for (const std::string& kind : ScheduleNames()) {
    for (const auto mode :
         {Rematerialization::kAlways, Rematerialization::kExceptFirst, Rematerialization::kNever}) {
      for (int stages = 1; stages <= 4; ++stages) {
        for (const int capacity : {1, 2, 8}) {
          ScheduleOptions options{
              .kind = kind, .rematerialization = mode, .stages = stages, .micro_batches = 5};
          options.placement = PlacementOf(kind, stages, 0);
          if (!options.placement.empty() && capacity < kLinkCapacity) continue;
          for (int cut = 0; cut + 1 < options.cells(); ++cut) options.tied_cuts.push_back(cut);
          options.tied_owners = {0};
          const Schedule schedule = MakeSchedule(options);
          const absl::Status valid = ValidateSchedule(schedule, {.link_capacity = capacity});
          EXPECT_TRUE(valid.ok()) << valid;
        }
      }
    }
  }
}

std::string RefusalOf(const std::string& stage0, const std::string& stage1) {
  Schedule schedule{.options = FirstToLast()};
  schedule.options.stages = 2;
  schedule.options.tied_cuts = {0};
  schedule.programs = *ParsePrograms("stage 0: " + stage0 + "\nstage 1: " + stage1 + "\n");
  return std::string(ValidateSchedule(schedule, {}).message());
}

TEST(TiedSchedule, AMessageInTheWrongPlaceOrTooManyOrTooFewIsRefused) {
  const std::string first = ">v in0 F0 >a0 <g0 B0 <c T", last = "<v <a0 F0 t0 L0 B0 >g0 >c";
  EXPECT_EQ(RefusalOf(first, last), "");
  EXPECT_THAT(RefusalOf("in0 >v F0 >a0 <g0 B0 <c T", last), HasSubstr(">v: values come first"));
  EXPECT_THAT(RefusalOf(first, "<v <a0 F0 t0 L0 >c B0 >g0"),
              HasSubstr("B0: after the gradients of tied parameters"));
  EXPECT_THAT(RefusalOf(">v in0 F0 >a0 <g0 B0 T <c", last), HasSubstr("<c: out of order"));
  EXPECT_THAT(RefusalOf(first, "<v <v <a0 F0 t0 L0 B0 >g0 >c"), HasSubstr("<v: a second time"));
  EXPECT_THAT(RefusalOf(">v in0 F0 >a0 <g0 B0 <c", last), HasSubstr("T is missing"));
  EXPECT_THAT(RefusalOf(first, "<v <a0 F0 t0 L0 B0 >g0"), HasSubstr(">c is missing"));
  EXPECT_THAT(RefusalOf(first, last + " T"), HasSubstr("T: no tied parameter asks for it"));
}

TEST(TiedSchedule, FollowsFromTheCut) {
  GptSpec gpt{.layers = 2, .width = 8, .heads = 2, .context = 4, .vocabulary = 16};
  gpt.tied_embeddings = true;
  const Network network = *ExpandNetwork(gpt);
  const auto of = [&network](const Partition& partition) {
    return FitToNetwork(network, partition, {.stages = partition.stages()});
  };
  EXPECT_THAT(of({{0, 2, 5}}).tied_cuts, ElementsAre(0, 1));
  EXPECT_THAT(of({{0, 2, 5}}).tied_owners, ElementsAre(0));
  EXPECT_THAT(of({{0}}).tied_cuts, IsEmpty());
  EXPECT_THAT(of({{0}}).tied_owners, ElementsAre(0));
  gpt.tied_embeddings = false;
  EXPECT_THAT(FitToNetwork(*ExpandNetwork(gpt), {{0, 2}}, {.stages = 2}).tied_owners, IsEmpty());
}

// A step longer by the values on their way down and the gradients on theirs up, hop by hop.
TEST(TiedSchedule, TakesTheTimeOfItsMessages) {
  const std::vector<CellCost> without(3, {.forward_seconds = 1, .backward_seconds = 2});
  std::vector<CellCost> with = without;
  for (CellCost& cost : with) cost.tied_value_bytes = 2, cost.tied_gradient_bytes = 4;
  const LinkCost link{.bytes_per_second = 1, .latency_seconds = 0};
  const Schedule schedule = MakeSchedule(FirstToLast());
  const auto slow = Simulate(schedule, with, link, {}),
             quick = Simulate(schedule, without, link, {});
  ASSERT_TRUE(slow.ok() && quick.ok());
  EXPECT_EQ(quick->step_seconds, 3 + 3 * 2);
  // The last stage begins two hops of values later but one second of forwards, which runs
  // meanwhile; its gradients leave with its gradient and take two hops, of which the others'
  // backwards hide the first.
  EXPECT_EQ(slow->step_seconds, 13 + 2);
  EXPECT_EQ(slow->busy_seconds, quick->busy_seconds);
}

}  // namespace
}  // namespace stagecoach
