// What a user's text may say, and what is refused. Every refusal must mark the word or name the
// remedy.
#include "plan/schedules/own_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plan/schedules/job_schedule.h"
#include "plan/schedules/schedule_kinds.h"
#include "plan/schedules/simulator.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

JobSpec JobOf(const std::string& text, int stages, int micro_batches) {
  JobSpec spec;
  spec.training.micro_batches = micro_batches;
  spec.pipeline.stages = stages;
  spec.pipeline.schedule = kOwnSchedule;
  spec.pipeline.own_schedule = text;
  spec.pipeline.rematerialization = Rematerialization::kNever;
  return spec;
}

constexpr int kLayers = 8;
std::string ErrorOf(const std::string& text, int stages, int micro_batches) {
  const absl::Status status = ValidateOwnSchedule(JobOf(text, stages, micro_batches), kLayers);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

// Forwards and backwards alone, as a user would write them.
std::string OrderOf(const Schedule& schedule) {
  Schedule order = schedule;
  for (StageProgram& program : order.programs) {
    std::erase_if(program.instructions, [](const Instruction& i) { return !IsWork(i.op); });
  }
  return FormatSchedule(order);
}

TEST(OwnSchedule, TheOrderOfAKindIsTheKindsSchedule) {
  for (const std::string& kind : ScheduleNames()) {
    for (const auto& [stages, micro_batches] : {std::pair(2, 3), {3, 2}, {4, 8}}) {
      SCOPED_TRACE(absl::StrCat(kind, " ", stages, " ", micro_batches));
      const Schedule wanted = MakeSchedule({.kind = kind,
                                            .rematerialization = Rematerialization::kNever,
                                            .stages = stages,
                                            .micro_batches = micro_batches,
                                            .placement = PlacementOf(kind, stages, 0)});
      const JobSpec job = JobOf(OrderOf(wanted), stages, micro_batches);
      ASSERT_TRUE(ValidateOwnSchedule(job, kLayers).ok()) << ValidateOwnSchedule(job, kLayers);
      auto options = ScheduleOptionsOf(job, stages, kLayers);
      ASSERT_TRUE(options.ok()) << options.status();
      EXPECT_EQ(options->placement, wanted.options.placement);
      EXPECT_FALSE(options->own->complete);
      const Schedule made = MakeSchedule(*options);
      EXPECT_EQ(OrderOf(made), OrderOf(wanted));
      if (!wanted.options.placement.empty()) EXPECT_EQ(made.programs, wanted.programs);
      const std::vector<CellCost> costs(static_cast<size_t>(wanted.options.cells()),
                                        {.forward_seconds = 1, .backward_seconds = 2});
      EXPECT_DOUBLE_EQ(IdealBubble(*options), Simulate(wanted, costs, {}, {})->Bubble());
    }
  }
}

TEST(OwnSchedule, ACompleteTextRunsAsItStandsAndEvaluationsTakeItsForwards) {
  for (const std::string& kind : {"one_forward_one_backward", "zero_bubble_v"}) {
    ScheduleOptions wanted{.kind = kind,
                           .rematerialization = Rematerialization::kExceptFirst,
                           .stages = 2,
                           .micro_batches = 4,
                           .placement = PlacementOf(kind, 2, 0)};
    const Schedule training = MakeSchedule(wanted);
    wanted.forward_only = true;
    const Schedule evaluation = MakeSchedule(wanted);
    JobSpec job = JobOf(FormatSchedule(training), 2, 4);
    job.pipeline.rematerialization = Rematerialization::kExceptFirst;
    auto options = ScheduleOptionsOf(job, 2, kLayers);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_TRUE(options->own->complete);
    EXPECT_EQ(MakeSchedule(*options).programs, training.programs);
    EXPECT_TRUE(CheckOwnSchedule(MakeSchedule(*options)).ok());
    options->forward_only = true;
    EXPECT_EQ(MakeSchedule(*options).programs, evaluation.programs);
  }
}

TEST(OwnSchedule, TakesCommentsAndLongLines) {
  const auto own = ParseOwnSchedule(
      "# mine\nstage 0: F0 F1  # first\n  B0 B1\n\nstage 1: F0 B0\n# between\n F1 B1\n",
      {.stages = 2, .micro_batches = 2, .layers = 2});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(FormatProgram(own->programs[0]), "stage 0: F0 F1 B0 B1");
  EXPECT_EQ(FormatProgram(own->programs[1]), "stage 1: F0 B0 F1 B1");
}

TEST(OwnSchedule, PlacementsAreAnyThatBeginOnStageZero) {
  const auto own = ParseOwnSchedule(
      "stage 0: F0.0 F3.0 B3.0 B0.0\nstage 1: F2.0 B2.0\nstage 2: F1.0 B1.0\n",
      {.stages = 3, .micro_batches = 1, .layers = 4});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->placement, (CellPlacement{0, 2, 1, 0}));
  EXPECT_EQ(ErrorOf("stage 0: F0.0 F3.0 B3.0 B0.0\nstage 1: F2.0 B2.0\nstage 2: F1.0 B1.0\n", 3, 1),
            "");
}

TEST(OwnSchedule, RefusesWithTheWordMarked) {
  // An order: what is missing, twice, too early, out of order.
  EXPECT_THAT(ErrorOf("stage 0: B0 F0\nstage 1: F0 B0\n", 2, 1),
              StartsWith("pipeline.own_schedule: stage 0: "));
  EXPECT_THAT(ErrorOf("stage 0: B0 F0\nstage 1: F0 B0\n", 2, 1), HasSubstr("[[B0]] "));
  EXPECT_THAT(ErrorOf("stage 0: B0 F0\nstage 1: F0 B0\n", 2, 1),
              HasSubstr("\nstage 1: <a0 F0 t0 L0 B0 >g0"));
  EXPECT_THAT(ErrorOf("stage 0: F0 F1 B0\nstage 1: F0 B0 F1 B1\n", 2, 2),
              HasSubstr("stage 0: B1 is missing: training.micro_batches is 2, and they count from 0\nstage 0: F0 F1 B0 [[end]]"));
  EXPECT_THAT(ErrorOf("stage 0: F0 F1 B1 B0\nstage 1: F0 F1 B1 B0\n", 2, 2),
              HasSubstr("B1: backwards must ascend"));
  EXPECT_THAT(ErrorOf("stage 0: F0 F0 B0\nstage 1: F0 B0\n", 2, 1), HasSubstr("F0 stands twice\nstage 0: F0 [[F0]] B0"));
  EXPECT_THAT(ErrorOf("stage 0: F0 I0\nstage 1: F0 B0\n", 2, 1), HasSubstr("W0 is missing"));
  EXPECT_THAT(ErrorOf("stage 0: F0 B0 W0\nstage 1: F0 B0\n", 2, 1),
              HasSubstr("B0 is I0 and W0 in one; write it or them"));
  EXPECT_THAT(ErrorOf("stage 0: F0.0 F1.0 F2.0 B2.0 B1.0 B0.0\nstage 1: F1.0 B1.0\n", 2, 1),
              HasSubstr("stage 1: [[F1.0]] B1.0"));
  EXPECT_THAT(ErrorOf("stage 0: F0 F1 B0 B1\nstage 1: F1 F0 B0 B1\n", 2, 2),
              HasSubstr("F1: forwards must ascend"));
  // Both stages wait for the other.
  const std::string deadlock =
      ErrorOf("stage 0: F0.0 B2.0 B0.0 F2.0\nstage 1: F1.0 B1.0\n", 2, 1);
  EXPECT_THAT(deadlock, HasSubstr("[[")) << deadlock;
  const std::string waits = ErrorOf(
      "stage 0: F0.0 F2.1 F2.0 F0.1 B2.0 B2.1 B0.0 B0.1\nstage 1: F1.0 F1.1 B1.0 B1.1\n", 2, 2);
  EXPECT_THAT(waits, StartsWith("pipeline.own_schedule: ")) << waits;
  EXPECT_THAT(waits, HasSubstr("[[")) << waits;
  // Cells and micro-batches.
  EXPECT_THAT(ErrorOf("stage 0: F0.0 B0.0\nstage 1: F2.0 B2.0\n", 2, 1),
              HasSubstr("cell 1 is on no stage"));
  EXPECT_THAT(ErrorOf("stage 0: F0.0 B0.0\nstage 1: F1.0 F0.0 B1.0\n", 2, 1),
              HasSubstr("cell 0 is on stage 0 already, and a cell has one stage\nstage 1: F1.0 [["));
  EXPECT_THAT(ErrorOf("stage 0: F8.0 B8.0\nstage 1: F1.0 B1.0\n", 2, 1),
              HasSubstr("cell 8: the model has 8 layers, and each cell needs one\nstage 0: [[F8.0]]"));
  EXPECT_THAT(ErrorOf("stage 0: F1.0 B1.0\nstage 1: F0.0 B0.0\n", 2, 1),
              HasSubstr("cell 0 is on stage 1; number the stages so that it is on stage 0"));
  EXPECT_THAT(ErrorOf("stage 0: F0.0 B0.0\nstage 1:\n", 2, 1), HasSubstr("stage 1 has no words; give it a cell"));
  EXPECT_THAT(ErrorOf("stage 0: F0 F1 B0 B1\nstage 1: F0 F1 B0 B1\n", 2, 1),
              HasSubstr("micro-batch 1: they count from 0, and training.micro_batches is 1"));
  EXPECT_THAT(ErrorOf("stage 0: F0 B0\nstage 1: F0 B0\n", 3, 1),
              HasSubstr("pipeline.stages is 3, and the text ends with stage 1: write a line for each"));
  EXPECT_THAT(ErrorOf("stage 0: F0 X0\nstage 1: F0 B0\n", 2, 1), HasSubstr("[[X0]]"));
  EXPECT_THAT(ErrorOf("F0 B0\n", 1, 1), HasSubstr("must begin with \"stage 0:\""));
  EXPECT_THAT(ErrorOf("stage 0: F0 F2147483647 B0\n", 1, 1), HasSubstr("micro-batch 2147483647"));
  std::string million = "stage 0:";
  for (int i = 0; i < 1'000'000; ++i) absl::StrAppend(&million, " F", i);
  EXPECT_THAT(ErrorOf(million, 1, 1), HasSubstr("bytes; at most 262144"));
}

// Seen: such texts passed, and no stage ever loaded: evaluations have their losses ascend. Besides,
// batch norm gathers its moments in forwards, so the bits would be others.
TEST(OwnSchedule, ForwardsAscend) {
  EXPECT_THAT(ErrorOf("stage 0: F1 F0 B0 B1\nstage 1: F1 F0 B0 B1\n", 2, 2),
              HasSubstr("F1: forwards must ascend\nstage 0: in1 [[F1]]"));
}

TEST(OwnSchedule, RefusesWhatIsLargerThanItsText) {
  EXPECT_THAT(ErrorOf("stage 0: in0.0 F0.0 F1.0 F2.0\n", 1, 65536),
              HasSubstr("F0.1 is missing: training.micro_batches is 65536"));
  std::string many = "stage 0:";
  for (int cell = 0; cell < 17; ++cell) absl::StrAppend(&many, " F", cell, ".0");
  const absl::Status status = ParseOwnSchedule(many, {.stages = 1, .micro_batches = 1, .layers = 0}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 0 has 17 cells; at most 16"));
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBFstage 0: F0 B0\n", 1, 1), "") << "a byte-order mark";
  EXPECT_LT(ErrorOf("stage 0: F" + std::string(200'000, '9') + "\n", 1, 1).size(), 1000u);
}

TEST(OwnSchedule, RefusesACompleteTextThatLeavesASendOut) {
  const auto options = ScheduleOptionsOf(
      JobOf("stage 0: in0 F0 <g0 B0\nstage 1: <a0 F0 t0 L0 B0 >g0\n", 2, 1), 2, kLayers);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(std::string(CheckOwnSchedule(MakeSchedule(*options)).message()),
              HasSubstr(">a0 is missing\nstage 0: in0 F0 <g0 B0 [[end]]"));
}

TEST(OwnSchedule, SplitBackwardsNeedTheirStashes) {
  JobSpec job = JobOf("stage 0: F0 F1 I0 I1 W0 W1\nstage 1: F0 F1 I0 I1 W0 W1\n", 2, 2);
  EXPECT_TRUE(ValidateOwnSchedule(job, kLayers).ok()) << ValidateOwnSchedule(job, kLayers);
  job.pipeline.rematerialization = Rematerialization::kAlways;
  EXPECT_THAT(std::string(ValidateOwnSchedule(job, kLayers).message()),
              HasSubstr("rematerialization: never"));
}

TEST(OwnSchedule, ContradictsNothingElseInTheJob) {
  const JobSpec good = JobOf("stage 0: F0 B0\nstage 1: F0 B0\n", 2, 1);
  const auto error = [&](auto change) {
    JobSpec job = good;
    change(job.pipeline);
    return std::string(ValidateOwnSchedule(job, kLayers).message());
  };
  EXPECT_EQ(error([](PipelineSpec&) {}), "");
  EXPECT_THAT(error([](PipelineSpec& p) { p.stages = 0; }), StartsWith("pipeline.stages"));
  EXPECT_THAT(error([](PipelineSpec& p) { p.min_stages = 1; }), StartsWith("pipeline.min_stages"));
  EXPECT_THAT(error([](PipelineSpec& p) { p.continue_with_fewer_stages = true; }),
              StartsWith("pipeline.continue_with_fewer_stages"));
  EXPECT_THAT(error([](PipelineSpec& p) { p.cells_per_stage = 1; }),
              StartsWith("pipeline.cells_per_stage"));
  EXPECT_THAT(error([](PipelineSpec& p) { p.own_schedule = ""; }), HasSubstr("{file: PATH}"));
  EXPECT_THAT(error([](PipelineSpec& p) { p.schedule = "gpipe"; }),
              HasSubstr("pipeline.schedule is gpipe"));
}

}  // namespace
}  // namespace stagecoach
