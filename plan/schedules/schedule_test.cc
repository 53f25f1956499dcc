// Protects the generator and the text form: what stages do, in which order, word by word.
#include "plan/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/golden_testing.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

constexpr Rematerialization kModes[] = {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                                        Rematerialization::kNever};

std::vector<ScheduleOptions> AllOptions(int max_stages, int max_micro_batches) {
  std::vector<ScheduleOptions> all;
  for (const std::string& kind : ScheduleNames()) {
    for (Rematerialization mode : kModes) {
      for (int k = 1; k <= max_stages; ++k) {
        for (int m = 1; m <= max_micro_batches; ++m) {
          for (bool forward_only : {false, true}) all.push_back({kind, mode, k, m, forward_only});
        }
      }
    }
  }
  return all;
}

std::vector<int> MicroBatchesOf(const StageProgram& program, int cell, Opcode op) {
  std::vector<int> found;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.op == op && instruction.cell.value == cell) found.push_back(instruction.micro_batch.value);
  }
  return found;
}

std::vector<int> UpTo(int m) {
  std::vector<int> all;
  for (int i = 0; i < m; ++i) all.push_back(i);
  return all;
}

TEST(GoldenSchedule, OfTheArchitectureDocument) {
  const Schedule schedule = MakeSchedule(
      {.rematerialization = Rematerialization::kExceptFirst, .stages = 2, .micro_batches = 3});
  EXPECT_EQ(FormatSchedule(schedule),
            "stage 0: in0 F0 >a0 in1 F1 >a1 in2 F2 >a2 <g0 B0 R1 <g1 B1 R2 <g2 B2\n"
            "stage 1: <a0 F0 <a1 F1 <a2 F2 t0 L0 B0 >g0 R1 t1 L1 B1 >g1 R2 t2 L2 B2 >g2\n");
}

TEST(GoldenSchedule, TextsStayAsTheyAre) {
  const std::pair<int, int> sizes[] = {{1, 1}, {1, 3}, {2, 3}, {3, 2}, {4, 6}};  // also M < K
  for (const std::string& kind : ScheduleNames()) {
    for (Rematerialization mode : kModes) {
      std::string text;
      for (const auto& [k, m] : sizes) {
        absl::StrAppend(&text, "# K=", k, " M=", m, "\n",
                        FormatSchedule(MakeSchedule({kind, mode, k, m})), "\n");
      }
      ExpectGolden(absl::StrCat("schedules/", kind, "_", RematerializationName(mode), ".txt"),
                   text);
    }
  }
  ExpectGolden(
      "schedules/forward_only.txt",
      FormatSchedule(MakeSchedule({.stages = 3, .micro_batches = 2, .forward_only = true})));
}

TEST(Generator, RunsForwardsAndBackwardsOnceAndAscending) {
  for (const ScheduleOptions& options : AllOptions(6, 8)) {
    const Schedule schedule = MakeSchedule(options);
    for (int cell = 0; cell < schedule.options.cells(); ++cell) {
      const StageProgram& program = schedule.programs[schedule.options.StageOfCell(cell)];
      const std::vector<int> all = UpTo(options.micro_batches);
      const std::vector<int> none, backwards = options.forward_only ? none : all;
      const bool whole = MicroBatchesOf(program, cell, Opcode::kBackwardInput).empty();
      EXPECT_EQ(MicroBatchesOf(program, cell, Opcode::kForward), all);
      EXPECT_EQ(MicroBatchesOf(program, cell, Opcode::kBackward), whole ? backwards : none);
      EXPECT_EQ(MicroBatchesOf(program, cell, Opcode::kBackwardInput), whole ? none : backwards);
      EXPECT_EQ(MicroBatchesOf(program, cell, Opcode::kBackwardWeight), whole ? none : backwards);
    }
  }
}

TEST(Generator, OneForwardOneBackwardRunsAheadByTheStagesBelow) {
  constexpr int kStages = 5, kMicroBatches = 7;
  const Schedule schedule = MakeSchedule(
      {.kind = "one_forward_one_backward", .stages = kStages, .micro_batches = kMicroBatches});
  for (int stage = 0; stage < kStages; ++stage) {
    int ahead = 0, most = 0;
    for (const Instruction& instruction : schedule.programs[stage].instructions) {
      if (instruction.op == Opcode::kForward) most = std::max(most, ++ahead);
      if (instruction.op == Opcode::kBackward) --ahead;
    }
    EXPECT_EQ(most, kStages - stage) << "live micro-batches of stage " << stage;
  }
}

// The most micro-batches that a stage holds at a time, stashed or put off.
int MostAlive(const StageProgram& program) {
  int alive = 0, most = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.op == Opcode::kForward) most = std::max(most, ++alive);
    const bool ends =
        instruction.op == Opcode::kBackward || instruction.op == Opcode::kBackwardWeight;
    if (ends) --alive;
  }
  return most;
}

// As many as the first stage of one_forward_one_backward has, on every stage: weights' parts may
// come so late. zero_bubble_2 has twice as many but one.
TEST(Generator, ZeroBubbleHoldsAsManyMicroBatchesAsThereAreStages) {
  constexpr int kStages = 5, kMicroBatches = 12;
  for (const bool twice : {false, true}) {
    const Schedule schedule = MakeSchedule({.kind = twice ? "zero_bubble_2" : "zero_bubble",
                                            .rematerialization = Rematerialization::kNever,
                                            .stages = kStages,
                                            .micro_batches = kMicroBatches});
    for (const StageProgram& program : schedule.programs) {
      EXPECT_EQ(MostAlive(program), twice ? 2 * kStages - 1 : kStages)
          << schedule.options.kind << ", stage " << program.stage.value;
    }
  }
}

TEST(Generator, ZeroBubbleSendsTheGradientBeforeTheWeightsPart) {
  EXPECT_EQ(FormatSchedule(MakeSchedule({.kind = "zero_bubble",
                                         .rematerialization = Rematerialization::kNever,
                                         .stages = 2,
                                         .micro_batches = 3})),
            "stage 0: in0 F0 >a0 in1 F1 >a1 <g0 B0 in2 F2 >a2 <g1 B1 <g2 B2\n"
            "stage 1: <a0 F0 t0 L0 I0 >g0 <a1 F1 t1 L1 I1 >g1 W0 <a2 F2 t2 L2 I2 >g2 W1 W2\n");
  EXPECT_EQ(FormatSchedule(MakeSchedule({.kind = "zero_bubble", .stages = 2, .micro_batches = 2})),
            "stage 0: in0 F0 >a0 in1 F1 >a1 R0 <g0 B0 R1 <g1 B1\n"
            "stage 1: <a0 F0 t0 L0 I0 >g0 W0 <a1 F1 t1 L1 I1 >g1 W1\n")
      << "recomputed: one stash at a time";
}

TEST(Generator, NeverRecomputesWhatWasForwardedLast) {
  // Its stash is the only one alive, so keeping it costs no memory.
  for (const ScheduleOptions& options : AllOptions(5, 6)) {
    for (const StageProgram& program : MakeSchedule(options).programs) {
      Instruction last_work{Opcode::kLoadInput, MicroBatchId()};
      for (const Instruction& instruction : program.instructions) {
        if (instruction.op == Opcode::kRecompute) {
          EXPECT_FALSE(last_work == (Instruction{Opcode::kForward, instruction.micro_batch,
                                                 instruction.cell}))
              << FormatSchedule({options, {program}});
        }
        if (instruction.op == Opcode::kForward || instruction.op == Opcode::kBackward ||
            instruction.op == Opcode::kBackwardInput || instruction.op == Opcode::kBackwardWeight) {
          last_work = instruction;
        }
      }
    }
  }
}

TEST(Generator, RecomputesBeforeItWaitsForTheGradient) {
  const Schedule schedule = MakeSchedule({.stages = 3, .micro_batches = 4});
  for (int stage = 0; stage < 2; ++stage) {
    const std::vector<Instruction>& instructions = schedule.programs[stage].instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].op != Opcode::kRecompute) continue;
      EXPECT_EQ(instructions[i + 1],
                (Instruction{Opcode::kReceiveGradient, instructions[i].micro_batch, CellId(stage)}));
    }
  }
}

TEST(Generator, KeepsStashesAsTheModeSays) {
  const auto kept = [](Rematerialization mode) {
    const Schedule schedule =
        MakeSchedule({.rematerialization = mode, .stages = 2, .micro_batches = 3});
    std::vector<bool> result;
    for (int m = 0; m < 3; ++m) {
      result.push_back(KeepsStash(schedule.programs[0], CellId(0), MicroBatchId(m)));
    }
    return result;
  };
  EXPECT_EQ(kept(Rematerialization::kAlways), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(kept(Rematerialization::kExceptFirst), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(kept(Rematerialization::kNever), (std::vector<bool>{true, true, true}));
}

// Where stages have several cells, receives are placed for links as they are.
TEST(Validator, AcceptsEveryGeneratedScheduleOnLinksOfOneMessage) {
  for (const ScheduleOptions& options : AllOptions(8, 12)) {
    const Schedule schedule = MakeSchedule(options);
    const int capacity = schedule.options.placement.empty() ? 1 : kLinkCapacity;
    const absl::Status status = ValidateSchedule(schedule, {.link_capacity = capacity});
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(Text, ParsesBackWhatItPrinted) {
  for (const ScheduleOptions& options : AllOptions(4, 5)) {
    const Schedule schedule = MakeSchedule(options);
    const std::string text = FormatSchedule(schedule);
    const auto programs = ParsePrograms(text, !schedule.options.placement.empty());
    ASSERT_TRUE(programs.ok()) << programs.status();
    EXPECT_EQ(*programs, schedule.programs);
    EXPECT_EQ(FormatSchedule({schedule.options, *programs}), text);
  }
}

TEST(Text, KnowsEveryInstruction) {
  const std::string text = "stage 0: in0 <a1 F2 >a3 t4 L5 <g6 R7 B8 I9 W10 >g11\n";
  const auto programs = ParsePrograms(text);
  ASSERT_TRUE(programs.ok()) << programs.status();
  std::set<Opcode> ops;
  for (const Instruction& instruction : (*programs)[0].instructions) ops.insert(instruction.op);
  EXPECT_EQ(ops.size(), 12u);
  EXPECT_EQ(FormatSchedule({{}, *programs}), text);
}

TEST(Text, ForgivesBlanksAndEmptyLines) {
  const auto programs = ParsePrograms("\n  stage 0: in0   F0 >a0\t\n\nstage 1: <a0 F0  t0 L0\r\n");
  ASSERT_TRUE(programs.ok()) << programs.status();
  EXPECT_EQ(FormatSchedule({{}, *programs}), "stage 0: in0 F0 >a0\nstage 1: <a0 F0 t0 L0\n");
}

TEST(Text, MarksTheWordItDoesNotKnow) {
  for (const char* bad : {"X0", "F", "F-1", "F01", "F+1", "F1x", ">b0", "<", "f0", "F2147483648",
                          "F99999999999999999999"}) {
    const absl::Status status =
        ParsePrograms(absl::StrCat("stage 0: in0 ", bad, " >a0\n")).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("in0 [[", bad, "]] >a0")));
  }
}

TEST(Text, RefusesStagesOutOfOrderAndNothingAtAll) {
  EXPECT_THAT(std::string(ParsePrograms("stage 1: in0\n").status().message()),
              HasSubstr("must begin with \"stage 0:\""));
  EXPECT_THAT(std::string(ParsePrograms("stage 0: in0\nstage 0: in0\n").status().message()),
              HasSubstr("must begin with \"stage 1:\""));
  EXPECT_FALSE(ParsePrograms("").ok());
  EXPECT_FALSE(ParsePrograms("in0 F0\n").ok());
}

}  // namespace
}  // namespace stagecoach
