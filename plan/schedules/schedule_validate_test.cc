// Protects the validator: a program that would compute something else, or never end, must not pass.
// Its oracle is an independent interpreter on symbols (interpreter_testing.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "plan/schedules/interpreter_testing.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
constexpr size_t kCapacity = 2;

// Backward in two parts, the weight part as late as the order allows: after the send.
Schedule SplitBackward(Schedule schedule) {
  for (StageProgram& program : schedule.programs) {
    std::vector<Instruction> split;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const auto [op, m, cell] = program.instructions[i];
      if (op != Opcode::kBackward) {
        split.push_back({op, m, cell});
        continue;
      }
      split.push_back({Opcode::kBackwardInput, m, cell});
      if (i + 1 < program.instructions.size() &&
          program.instructions[i + 1].op == Opcode::kSendGradient) {
        split.push_back(program.instructions[++i]);
      }
      split.push_back({Opcode::kBackwardWeight, m, cell});
    }
    program.instructions = std::move(split);
  }
  return schedule;
}

std::vector<Schedule> Originals() {
  std::vector<Schedule> all;
  for (const std::string& kind : ScheduleNames()) {
    for (Rematerialization mode :
         {Rematerialization::kAlways, Rematerialization::kExceptFirst, Rematerialization::kNever}) {
      for (int k = 1; k <= 3; ++k) {
        for (int m = 1; m <= (kSanitized ? 3 : 4); ++m) {
          all.push_back(MakeSchedule({kind, mode, k, m}));
          all.push_back(SplitBackward(all.back()));
        }
      }
    }
  }
  for (int k = 1; k <= 3; ++k) {
    all.push_back(MakeSchedule({.stages = k, .micro_batches = 3, .forward_only = true}));
  }
  return all;
}

class Tally {
 public:
  // The one promise: what the validator accepts means what the original means.
  void Check(const Schedule& original, const Sums& meaning, const Schedule& mutant) {
    const absl::Status status =
        ValidateSchedule(mutant, {.link_capacity = static_cast<int>(kCapacity)});
    const bool same = Interpreter(mutant, kCapacity).Run() == meaning;
    if (status.ok()) {
      ++accepted;
      ASSERT_TRUE(same) << "accepted, but means something else:\n"
                        << FormatSchedule(mutant) << "made from\n"
                        << FormatSchedule(original);
    } else {
      ++rejected;
      EXPECT_THAT(std::string(status.message()), HasSubstr("[["));
    }
  }
  int accepted = 0;
  int rejected = 0;
};

using Mutate = void (*)(const Schedule&, const Sums&, size_t stage, Tally*);

Tally ForAllPrograms(Mutate mutate) {
  Tally tally;
  for (const Schedule& original : Originals()) {
    const int least = original.options.placement.empty() ? 1 : kLinkCapacity;
    EXPECT_TRUE(ValidateSchedule(original, {.link_capacity = least}).ok())
        << FormatSchedule(original);
    const std::optional<Sums> meaning = Interpreter(original, kCapacity).Run();
    EXPECT_TRUE(meaning.has_value()) << FormatSchedule(original);
    if (!meaning.has_value()) break;
    for (size_t stage = 0; stage < original.programs.size(); ++stage) {
      mutate(original, *meaning, stage, &tally);
      if (testing::Test::HasFatalFailure()) return tally;
    }
  }
  return tally;
}

TEST(ValidatorMutation, DroppingAnInstruction) {
  const Tally tally =
      ForAllPrograms([](const Schedule& original, const Sums& meaning, size_t stage, Tally* t) {
        const std::vector<Instruction>& all = original.programs[stage].instructions;
        for (size_t i = 0; i < all.size(); ++i) {
          Schedule mutant = original;
          mutant.programs[stage].instructions.erase(mutant.programs[stage].instructions.begin() +
                                                    static_cast<std::ptrdiff_t>(i));
          const int before = t->accepted;
          t->Check(original, meaning, mutant);
          if (all[i].op != Opcode::kRecompute) {
            EXPECT_EQ(t->accepted, before) << "accepted without " << FormatInstruction(all[i]);
          }
        }
      });
  EXPECT_GT(tally.rejected, 1000);
}

TEST(ValidatorMutation, DoublingAnInstructionAnywhere) {
  const Tally tally =
      ForAllPrograms([](const Schedule& original, const Sums& meaning, size_t stage, Tally* t) {
        const std::vector<Instruction>& all = original.programs[stage].instructions;
        for (size_t i = 0; i < all.size(); ++i) {
          for (size_t at = 0; at <= all.size(); ++at) {
            Schedule mutant = original;
            std::vector<Instruction>& program = mutant.programs[stage].instructions;
            program.insert(program.begin() + static_cast<std::ptrdiff_t>(at), all[i]);
            t->Check(original, meaning, mutant);
          }
        }
      });
  EXPECT_EQ(tally.accepted, 0) << "everything happens once";
}

TEST(ValidatorMutation, SwappingTwoInstructions) {
  const Tally tally =
      ForAllPrograms([](const Schedule& original, const Sums& meaning, size_t stage, Tally* t) {
        const size_t size = original.programs[stage].instructions.size();
        for (size_t i = 0; i < size; ++i) {
          for (size_t j = i + 1; j < size; ++j) {
            Schedule mutant = original;
            std::vector<Instruction>& program = mutant.programs[stage].instructions;
            std::swap(program[i], program[j]);
            t->Check(original, meaning, mutant);
          }
        }
      });
  EXPECT_GT(tally.rejected, 10 * tally.accepted);
  EXPECT_GT(tally.accepted, 100) << "independent neighbours may change places";
}

TEST(ValidatorMutation, AnotherMicroBatch) {
  const Tally tally =
      ForAllPrograms([](const Schedule& original, const Sums& meaning, size_t stage, Tally* t) {
        for (size_t i = 0; i < original.programs[stage].instructions.size(); ++i) {
          for (int m = -1; m <= original.options.micro_batches; ++m) {
            Schedule mutant = original;
            MicroBatchId& id = mutant.programs[stage].instructions[i].micro_batch;
            if (id.value == m) continue;
            id = MicroBatchId(m);
            t->Check(original, meaning, mutant);
          }
        }
      });
  EXPECT_EQ(tally.accepted, 0);
}

Schedule Parsed(const ScheduleOptions& options, const std::string& text) {
  const auto programs = ParsePrograms(text);
  EXPECT_TRUE(programs.ok()) << programs.status();
  return {options, *programs};
}

std::string ErrorOf(const Schedule& schedule, const PipelineLimits& limits = {}) {
  const absl::Status status = ValidateSchedule(schedule, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ValidatorMessage, MarksThePlaceInTheProgram) {
  EXPECT_EQ(
      ErrorOf(Parsed({.stages = 1, .micro_batches = 1}, "stage 0: in0 t0 L0 F0 B0")),
      "schedule: stage 0: L0: its logits are not there: its forward or recompute comes later\n"
      "stage 0: in0 t0 [[L0]] F0 B0");
  EXPECT_EQ(ErrorOf(Parsed({.stages = 1, .micro_batches = 1}, "stage 0: in0 F0 t0 L0")),
            "schedule: stage 0: B0 is missing\nstage 0: in0 F0 t0 L0 [[end]]");
}

TEST(ValidatorMessage, ShowsOnlyTheSurroundingsInALongProgram) {
  Schedule schedule = MakeSchedule({.stages = 1, .micro_batches = 500});
  std::vector<Instruction>& program = schedule.programs[0].instructions;
  program.erase(program.begin() + 2000);
  const std::string error = ErrorOf(schedule);
  EXPECT_LT(error.size(), 400u);
  EXPECT_THAT(error, HasSubstr("stage 0: ... "));
  EXPECT_THAT(error, HasSubstr("[["));
}

TEST(Validator, SeesADeadlockAndShowsWhoWaits) {
  // Stage 0 sends all activations first, stage 1 answers each at once: with one message of room
  // both end up sending.
  const std::string text =
      "stage 0: in0 F0 >a0 in1 F1 >a1 in2 F2 >a2 in3 F3 >a3 <g0 B0 <g1 B1 <g2 B2 <g3 B3\n"
      "stage 1: <a0 F0 t0 L0 B0 >g0 <a1 F1 t1 L1 B1 >g1 <a2 F2 t2 L2 B2 >g2 <a3 F3 t3 L3 B3 >g3\n";
  const Schedule schedule = Parsed(
      {.rematerialization = Rematerialization::kNever, .stages = 2, .micro_batches = 4}, text);
  EXPECT_TRUE(ValidateSchedule(schedule, {.link_capacity = 2}).ok());
  const std::string error = ErrorOf(schedule, {.link_capacity = 1});
  EXPECT_THAT(error, HasSubstr("deadlock with links of 1 messages: 2 stages wait"));
  EXPECT_THAT(error, HasSubstr("[[>a3]]"));
  EXPECT_THAT(error, HasSubstr("[[>g1]]"));
}

TEST(Validator, SeesReceivesInAnotherOrderThanTheSends) {
  const std::string error =
      ErrorOf(Parsed({.stages = 2, .micro_batches = 2, .forward_only = true},
                     "stage 0: in0 F0 >a0 in1 F1 >a1\nstage 1: <a1 <a0 F0 t0 L0 F1 t1 L1\n"));
  EXPECT_THAT(error, HasSubstr("<a1: message number 0 from stage 0 is >a0"));
  EXPECT_THAT(error, HasSubstr("stage 1: [[<a1]] <a0"));
}

TEST(Validator, HoldsTheLimitOfLiveMicroBatches) {
  const ScheduleOptions gpipe{.stages = 3, .micro_batches = 6};
  ScheduleOptions alternating = gpipe;
  alternating.kind = "one_forward_one_backward";
  EXPECT_FALSE(ValidateSchedule(MakeSchedule(gpipe), {.max_live_micro_batches = 5}).ok());
  EXPECT_TRUE(ValidateSchedule(MakeSchedule(gpipe), {.max_live_micro_batches = 6}).ok());
  EXPECT_TRUE(ValidateSchedule(MakeSchedule(alternating), {.max_live_micro_batches = 3}).ok());
  EXPECT_FALSE(ValidateSchedule(MakeSchedule(alternating), {.max_live_micro_batches = 2}).ok());
}

TEST(Validator, HoldsThePromiseOfRematerialization) {
  Schedule schedule = MakeSchedule(
      {.rematerialization = Rematerialization::kNever, .stages = 2, .micro_batches = 3});
  schedule.options.rematerialization = Rematerialization::kAlways;
  EXPECT_THAT(ErrorOf(schedule),
              HasSubstr("F1: a second stash alive, but rematerialization is always"));
  Schedule recomputing = MakeSchedule({.stages = 2, .micro_batches = 3});
  recomputing.options.rematerialization = Rematerialization::kNever;
  EXPECT_THAT(ErrorOf(recomputing), HasSubstr("R0: rematerialization is never"));
}

TEST(Validator, RefusesProgramsThatDoNotFitTheOptions) {
  Schedule schedule = MakeSchedule({.stages = 2, .micro_batches = 2});
  schedule.options.stages = 3;
  EXPECT_THAT(ErrorOf(schedule), HasSubstr("2 programs for 3 stages"));
  schedule.options.stages = 2;
  std::swap(schedule.programs[0], schedule.programs[1]);
  EXPECT_THAT(ErrorOf(schedule), HasSubstr("program number 0 is of stage 1"));
  schedule.options.micro_batches = 0;
  EXPECT_THAT(ErrorOf(schedule), HasSubstr("0 micro-batches"));
  EXPECT_THAT(ErrorOf(MakeSchedule({}), {.link_capacity = 0}), HasSubstr("limits must be >= 1"));
}

}  // namespace
}  // namespace stagecoach
