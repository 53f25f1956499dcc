// Stage runtimes when something goes wrong: aborts, stalls, broken links, replacement, memory, the
// end.
#include <atomic>
#include <limits>
#include <utility>

#include "base/errors/status.h"
#include "base/testing/manual_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/reference/reference_backend.h"
#include "stage/link/testing/faulty_link.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string FaultText(const absl::Status& status) { return std::string(status.message()); }

// Says how often it was looked at: a stage that waits looks at the clock twice each time it thinks
// about it, for how long it may and for how long it has stood still.
class WatchedClock final : public Clock {
 public:
  int64_t MonotonicNanos() const override {
    const int64_t now = clock_.MonotonicNanos();
    if (++looks_ == jump_after_) clock_.AdvanceNanos(jump_nanos_);
    return now;
  }
  int64_t UnixNanos() const override { return clock_.UnixNanos(); }
  // So many seconds pass right after the look that has this number from here on.
  void JumpAfter(int look, double seconds) {
    jump_nanos_ = static_cast<int64_t>(seconds * 1e9);
    jump_after_ = looks_ + look;
  }
  // Nobody waits.
  void Advance(double seconds) { clock_.AdvanceNanos(static_cast<int64_t>(seconds * 1e9)); }
  // Returns when the time has been thought about, or the wait is over.
  void Advance(double seconds, const RunAnswer& waiting) {
    Advance(seconds);
    AwaitThought(waiting);
  }
  // Returns when a thought that began after this call is over, or the wait is. Of the four looks
  // the first may end an earlier thought, and that the third has read the time is known by the
  // fourth.
  void AwaitThought(const RunAnswer& waiting) const {
    const int before = looks_;
    Await([&] { return looks_ >= before + 4 || waiting.ready(); });
  }

 private:
  mutable ManualClock clock_;
  mutable std::atomic<int> looks_{0};
  std::atomic<int> jump_after_{0};
  std::atomic<int64_t> jump_nanos_{0};
};

class StageRuntimeFaultTest : public testing::Test {
 protected:
  RuntimeFleet::Options Options(int stages) {
    RuntimeFleet::Options options{.stages = stages};
    options.wrap_connector = [this](LinkConnector* connector) {
      return std::make_unique<FaultyConnector>(connector, CellId(0), faults_);
    };
    return options;
  }

  // Starts step 0 on stage 1 alone, which then waits for stage 0.
  static void StartWaiting(RuntimeFleet& fleet, RunAnswer& answer) {
    CHECK_OK(fleet.LoadAll(1));
    fleet.runtime(1).Run(RuntimeFleet::Train(1, 0, false), answer.callback());
    Await([&fleet] { return !fleet.runtime(1).Status().waiting_for.empty(); });
  }
  // It shows that it waits a moment before it first looks at the clock, and counts from that look
  // on.
  static void StartWaiting(RuntimeFleet& fleet, RunAnswer& answer, const WatchedClock& clock) {
    StartWaiting(fleet, answer);
    clock.AwaitThought(answer);
  }

  const std::shared_ptr<LinkFaults> faults_ = std::make_shared<LinkFaults>();
};

TEST_F(StageRuntimeFaultTest, AbortEndsAWaitAtOnceAndTheNeighbourHearsOfIt) {
  RuntimeFleet fleet(Options(2));
  RunAnswer waiting;
  StartWaiting(fleet, waiting);
  EXPECT_EQ(fleet.runtime(1).Status().state, "running");
  EXPECT_EQ(fleet.runtime(1).Status().phase, Phase::kBubble);
  EXPECT_TRUE(fleet.runtime(1)
                  .Abort(RuntimeFleet::FenceOf(1, 0), absl::UnavailableError("stage 7 was lost"))
                  .ok());
  const absl::Status status = waiting.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(FaultText(status), AllOf(HasSubstr("stage 1"), HasSubstr("stage 7 was lost")));
  EXPECT_EQ(fleet.runtime(1).Status().state, "aborted");
  // Stage 0 was not told; its link was.
  const absl::Status neighbour = fleet.Run(0, RuntimeFleet::Train(1, 0, false)).status();
  EXPECT_EQ(neighbour.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(FaultText(neighbour), HasSubstr("closed by its peer"));
}

TEST_F(StageRuntimeFaultTest, AnAbortedIncarnationIsOverUntilANewerLoad) {
  RuntimeFleet fleet(Options(2));
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  for (int k : {0, 1}) {
    EXPECT_TRUE(
        fleet.runtime(k).Abort(RuntimeFleet::FenceOf(1, 0), absl::AbortedError("recovery")).ok());
    Await([&fleet, k] { return fleet.runtime(k).Status().state == "aborted"; });
    EXPECT_EQ(fleet.Run(k, RuntimeFleet::Train(1, 0, false)).status().code(),
              absl::StatusCode::kAborted);
  }
  EXPECT_EQ(fleet.LoadAll(1).code(), absl::StatusCode::kAborted) << "a late load of the dead one";
  ASSERT_TRUE(fleet.LoadAll(2).ok());
  EXPECT_TRUE(fleet.TrainSteps(2, 0, 2).ok());
}

TEST_F(StageRuntimeFaultTest, IgnoresAbortsOfOlderIncarnationsAndOtherJobs) {
  RuntimeFleet fleet(Options(2));
  ASSERT_TRUE(fleet.LoadAll(3).ok());
  EXPECT_TRUE(fleet.runtime(0).Abort(RuntimeFleet::FenceOf(2, 9), absl::AbortedError("late")).ok());
  Fence other = RuntimeFleet::FenceOf(9, 0);
  other.job = "b";
  EXPECT_TRUE(fleet.runtime(1).Abort(other, absl::AbortedError("not you")).ok());
  EXPECT_TRUE(fleet.TrainSteps(3, 0, 2).ok());
}

TEST_F(StageRuntimeFaultTest, AStalledLinkFailsTheStepNamingWhatItWaitedFor) {
  WatchedClock clock;
  RuntimeFleet::Options options = Options(2);
  options.clock = &clock;
  options.progress_timeout_seconds = 0.2;
  RuntimeFleet fleet(options);
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 2).ok());
  faults_->stalled = true;
  RunAnswer answer;
  fleet.runtime(1).Run(RuntimeFleet::Train(1, 2, false), answer.callback());
  Await([&fleet] { return !fleet.runtime(1).Status().waiting_for.empty(); });
  clock.AwaitThought(answer);
  clock.Advance(0.2, answer);
  const absl::Status status = answer.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(FaultText(status),
            "no operation done for 0.2 s: stage 1 waits for activation of micro-batch 0 from stage "
            "0 (job a term 1 generation 1 step 2 attempt 0); the coordinator told nothing of the "
            "other stages");
}

TEST_F(StageRuntimeFaultTest, TheProgressDeadlineIsOfTheClockAndNotOfWakeUps) {
  WatchedClock clock;
  RuntimeFleet::Options options = Options(2);
  options.clock = &clock;
  RuntimeFleet fleet(options);
  RunAnswer waiting;
  StartWaiting(fleet, waiting, clock);
  clock.Advance(29.9, waiting);
  // Wake it for nothing: an abort that does not concern it.
  EXPECT_TRUE(fleet.runtime(1).Abort(RuntimeFleet::FenceOf(0, 0), absl::AbortedError("late")).ok());
  clock.AwaitThought(waiting);
  EXPECT_FALSE(waiting.ready());
  clock.Advance(0.2, waiting);
  const absl::Status status = waiting.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(FaultText(status), HasSubstr("no operation done for 30 s"));
  EXPECT_NEAR(fleet.runtime(1).Status().phases.Sum(), 30.1, 1e-6) << "every second has a phase";
}

// Symptom: a micro-batch took stage 1 of three more than half a minute, so stage 0, and stage 2 as
// well, gave up and failed the job. Cause: who waits looked at what it did itself, not at what the
// others do. Stage 1 waits here for a neighbour that may wait itself.
TEST_F(StageRuntimeFaultTest, AWaitGoesOnForAsLongAsAnyStageOfTheJobGetsOn) {
  WatchedClock clock;
  RuntimeFleet::Options options = Options(2);
  options.clock = &clock;
  RuntimeFleet fleet(options);
  RunAnswer waiting, neighbour;
  StartWaiting(fleet, waiting, clock);
  for (uint64_t number = 1; number <= 20; ++number) {  // ten minutes
    fleet.runtime(1).TellJobProgress(number, 1.5);
    clock.Advance(29, waiting);
  }
  EXPECT_FALSE(waiting.ready());
  fleet.runtime(0).Run(RuntimeFleet::Train(1, 0, false), neighbour.callback());
  EXPECT_TRUE(neighbour.Get().ok());
  const auto report = waiting.Get();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->phases[Phase::kBubble], 579);
}

TEST_F(StageRuntimeFaultTest, AWaitEndsWhenNoStageOfTheJobGetsOn) {
  WatchedClock clock;
  RuntimeFleet::Options options = Options(2);
  options.clock = &clock;
  RuntimeFleet fleet(options);
  RunAnswer waiting;
  StartWaiting(fleet, waiting, clock);
  for (int i = 0; i < 7; ++i) {
    fleet.runtime(1).TellJobProgress(7, 3);  // always the same, and in time
    clock.Advance(5.5, waiting);
  }
  const absl::Status status = waiting.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(FaultText(status),
              AllOf(HasSubstr("no operation done for 30 s: stage 1 waits for activation of "
                              "micro-batch 0 from stage 0"),
                    HasSubstr("nor by any other stage, says the coordinator")));
}

// Symptom: the coordinator's disk took 40 s for a sync, so no renewal was answered, and a stage
// whose neighbour computed a micro-batch of that length failed the job. Cause: silence was taken
// for a neighbour that stands still.
TEST_F(StageRuntimeFaultTest, ACoordinatorThatIsSilentForMinutesEndsNoWait) {
  WatchedClock clock;
  RuntimeFleet::Options options = Options(2);
  options.clock = &clock;
  RuntimeFleet fleet(options);
  RunAnswer waiting, neighbour;
  StartWaiting(fleet, waiting, clock);
  for (int silence = 0; silence < 3; ++silence) {
    fleet.runtime(1).TellJobProgress(7, 1.5);  // the neighbour's news may not be in it yet
    clock.Advance(29, waiting);
    for (int i = 0; i < 3; ++i) clock.Advance(29, waiting);
  }
  EXPECT_FALSE(waiting.ready());
  fleet.runtime(0).Run(RuntimeFleet::Train(1, 0, false), neighbour.callback());
  EXPECT_TRUE(neighbour.Get().ok());
  const auto report = waiting.Get();
  EXPECT_TRUE(report.ok()) << report.status();
}

// A machine that stood still for more than the time between the two looks of a wait, for how long
// it may and how long it has: the coordinator had been heard just before, so the step failed.
TEST_F(StageRuntimeFaultTest, AWaitOutlivesAMachineThatStandsStill) {
  for (const int look : {4, 5}) {  // one of the two is between them
    WatchedClock clock;
    RuntimeFleet::Options options = Options(2);
    options.clock = &clock;
    RuntimeFleet fleet(options);
    RunAnswer waiting;
    StartWaiting(fleet, waiting, clock);
    fleet.runtime(1).TellJobProgress(7, 1.5);
    clock.JumpAfter(look, 40);
    for (int thoughts = 0; thoughts < 3; ++thoughts) clock.AwaitThought(waiting);
    EXPECT_FALSE(waiting.ready()) << look;
    clock.Advance(601, waiting);
    EXPECT_THAT(FaultText(waiting.Get().status()), HasSubstr("no operation done for 600 s"));
  }
}

TEST_F(StageRuntimeFaultTest, WithoutACoordinatorAWaitEndsAndSaysSo) {
  WatchedClock clock;
  RuntimeFleet::Options options = Options(2);
  options.clock = &clock;
  RuntimeFleet fleet(options);
  fleet.runtime(1).TellJobProgress(7, 1.5);  // its last word
  clock.Advance(4);                          // a silence by now, whenever the stage looks
  RunAnswer waiting;
  StartWaiting(fleet, waiting, clock);
  for (int i = 0; i < 3; ++i) clock.Advance(199, waiting);
  EXPECT_FALSE(waiting.ready());
  clock.Advance(4, waiting);
  EXPECT_THAT(FaultText(waiting.Get().status()),
              AllOf(HasSubstr("no operation done for 600 s"),
                    HasSubstr("the coordinator was last heard 605.0 s ago")));
}

TEST_F(StageRuntimeFaultTest, WhateverAStageWorksOnShows) {
  RuntimeFleet fleet(Options(1));
  uint64_t before = fleet.runtime(0).Status().progress;
  const auto moved = [&] {
    const uint64_t now = fleet.runtime(0).Status().progress;
    return std::exchange(before, now) != now;
  };
  ProfileAnswer profile;
  fleet.runtime(0).Profile(fleet.Profile(), profile.callback());
  ASSERT_TRUE(profile.Get().ok());
  EXPECT_TRUE(moved()) << "a profile";
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  EXPECT_TRUE(moved()) << "initial weights";
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 1).ok());
  EXPECT_TRUE(moved()) << "a step";
  ASSERT_TRUE(fleet.Checkpoint(1, 1, "/a/one").ok());
  EXPECT_TRUE(moved()) << "a shard";
  ASSERT_TRUE(fleet.LoadAll(2, 1, "/a/one").ok());
  EXPECT_TRUE(moved()) << "a checkpoint that is read";
  EXPECT_FALSE(moved()) << "rest";
}

TEST_F(StageRuntimeFaultTest, ALinkThatBreaksInTheMiddleFailsBothSidesAndANewLoadRepairs) {
  RuntimeFleet fleet(Options(2));
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  const auto expected = fleet.TrainSteps(1, 0, 2);
  ASSERT_TRUE(expected.ok());
  for (int messages = 0; messages < 6; ++messages) {
    const uint64_t generation = 2 + messages * 2;
    ASSERT_TRUE(fleet.LoadAll(generation).ok());
    faults_->close_after = messages;
    std::vector<RunAnswer> answers(2);
    for (int k : {0, 1}) {
      fleet.runtime(k).Run(RuntimeFleet::Train(generation, 0, false), answers[k].callback());
    }
    const absl::Status status = answers[0].Get().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    answers[1].Get().IgnoreError();  // it may have finished before the last gradient broke off
    faults_->close_after = -1;
    ASSERT_TRUE(fleet.LoadAll(generation + 1).ok());
    const auto losses = fleet.TrainSteps(generation + 1, 0, 2);
    ASSERT_TRUE(losses.ok()) << losses.status();
    EXPECT_EQ(*losses, *expected) << "broken after " << messages << " messages";
  }
}

TEST_F(StageRuntimeFaultTest, ANewerLoadReplacesAStepThatWaits) {
  RuntimeFleet fleet(Options(2));
  RunAnswer waiting;
  StartWaiting(fleet, waiting);
  LoadAnswer load;
  fleet.runtime(1).Load(fleet.LoadOf(1, 2, 0), load.callback());
  ASSERT_TRUE(load.Get().ok());
  const absl::Status status = waiting.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(FaultText(status), HasSubstr("replaced by a load of job a term 1 generation 2"));
  ASSERT_TRUE(fleet.LoadAll(2).ok());
  EXPECT_TRUE(fleet.TrainSteps(2, 0, 1).ok());
}

TEST_F(StageRuntimeFaultTest, AReleaseEndsAStepThatWaits) {
  RuntimeFleet fleet(Options(2));
  RunAnswer waiting;
  StartWaiting(fleet, waiting);
  ReleaseAnswer release;
  fleet.runtime(1).Release(RuntimeFleet::FenceOf(1, 0), release.callback());
  EXPECT_EQ(waiting.Get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(release.Get().ok());
  EXPECT_EQ(fleet.runtime(1).Status().memory.total_current, 0);
}

TEST_F(StageRuntimeFaultTest, AFullQueueRefusesAndTheEndAnswersWhatIsLeft) {
  RuntimeFleet fleet(Options(2));
  RunAnswer waiting;
  StartWaiting(fleet, waiting);
  std::vector<RunAnswer> queued(16);
  for (RunAnswer& answer : queued) {
    fleet.runtime(1).Run(RuntimeFleet::Train(1, 0, false), answer.callback());
    EXPECT_FALSE(answer.ready());
  }
  EXPECT_EQ(fleet.Run(1, RuntimeFleet::Train(1, 0, false)).status().code(),
            absl::StatusCode::kUnavailable)
      << "the stage is busy; no job is at fault";
  fleet.runtime(1).Shutdown();
  EXPECT_EQ(waiting.Get().status().code(), absl::StatusCode::kCancelled);
  for (RunAnswer& answer : queued) {
    EXPECT_EQ(answer.Get().status().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(fleet.Run(1, RuntimeFleet::Train(1, 0, false)).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(StageRuntimeFaultTest, TooLittleMemoryIsAnAnswerAndLeavesNothingBehind) {
  RuntimeFleet::Options options = Options(1);
  options.memory_limit_bytes = 6000;
  RuntimeFleet fleet(options);
  const absl::Status status = fleet.LoadAll(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(fleet.runtime(0).Status().state, "empty");
  EXPECT_EQ(fleet.runtime(0).Status().memory.total_current, 0);
}

// Its first attention finds no room for what it needs itself, as the CPU's back end may.
class CrampedBackend final : public ReferenceBackend {
 public:
  CrampedBackend() : ReferenceBackend(BackendOptions{}) {}
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override {
    ASSIGN_OR_RETURN(Kernel kernel, ReferenceBackend::Prepare(call, types, activation));
    if (call.operation != "attention") return kernel;
    return [this, kernel](const KernelContext& context, const KernelArguments& arguments) {
      if (++attentions_ == 1) refusal_ = absl::ResourceExhaustedError("workspace: over the limit");
      kernel(context, arguments);
    };
  }
  absl::Status Synchronize() override { return refusal_; }
  void EndCell() override { refusal_ = absl::OkStatus(); }

 private:
  int attentions_ = 0;
  absl::Status refusal_;
};

// Seen: after one out-of-memory inside of an operation every later job on that stage server failed
// with the same words. The back end kept its refusal beyond the cell that it was for.
TEST_F(StageRuntimeFaultTest, AJobThatFoundNoWorkspaceDoesNotSpoilTheNextOne) {
  RuntimeFleet::Options options = Options(1);
  options.make_backend = [] { return std::make_unique<CrampedBackend>(); };
  RuntimeFleet fleet(options);
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  EXPECT_EQ(fleet.TrainSteps(1, 0, 1).status().code(), absl::StatusCode::kResourceExhausted);
  const absl::Status loaded = fleet.LoadAll(2);
  ASSERT_TRUE(loaded.ok()) << loaded;
  const auto losses = fleet.TrainSteps(2, 0, 2);
  EXPECT_TRUE(losses.ok()) << losses.status();
}

TEST_F(StageRuntimeFaultTest, AProfileThatFoundNoWorkspaceDoesNotSpoilTheJob) {
  RuntimeFleet::Options options = Options(1);
  options.make_backend = [] { return std::make_unique<CrampedBackend>(); };
  RuntimeFleet fleet(options);
  ProfileAnswer profile;
  fleet.runtime(0).Profile(fleet.Profile(), profile.callback());
  EXPECT_EQ(profile.Get().status().code(), absl::StatusCode::kResourceExhausted);
  const absl::Status loaded = fleet.LoadAll(1);
  EXPECT_TRUE(loaded.ok()) << loaded;
}

// Writes down what it is told.
class ToldBackend final : public ReferenceBackend {
 public:
  ToldBackend(int64_t limit, std::vector<SpareMemory>* told)
      : ReferenceBackend(BackendOptions{.memory_limit_bytes = limit}), told_(told) {}
  void UseSpareMemory(const SpareMemory& spare) override { told_->push_back(spare); }

 private:
  std::vector<SpareMemory>* const told_;
};

// A stage and the plan must agree: packed weights that no plan has counted would take the memory of
// the step.
TEST_F(StageRuntimeFaultTest, TheBackEndIsToldWhetherPackedWeightsHaveRoomInTheStagesMemory) {
  const LoadCommand command = RuntimeFleet(Options(1)).LoadOf(0, 1, 0);
  const auto plan = MakePlan(command.spec, *command.network, 1, {}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const int64_t needed = plan->stages[0].memory.total();
  std::vector<SpareMemory> told;
  for (const int64_t limit : {int64_t{0}, 20 * needed, needed}) {
    RuntimeFleet::Options options = Options(1);
    options.make_backend = [&] { return std::make_unique<ToldBackend>(limit, &told); };
    RuntimeFleet fleet(options);
    fleet.LoadAll(1).IgnoreError();  // with so little it may be refused
  }
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0],
            (SpareMemory{.packed_weights = true, .rooms = std::numeric_limits<int64_t>::max()}));
  EXPECT_TRUE(told[1].packed_weights);
  EXPECT_GT(told[1].rooms, 18 * needed);
  EXPECT_EQ(told[2], SpareMemory()) << "the job needs all of it";
}

// Convolutions with large rooms were timed on one thread and all else on all of them, where the
// memory had a limit: the cuts by such a profile were bad ones.
TEST_F(StageRuntimeFaultTest, AProfileHasRoomsForFurtherThreadsToo) {
  std::vector<SpareMemory> told;
  RuntimeFleet::Options options = Options(1);
  options.make_backend = [&] { return std::make_unique<ToldBackend>(int64_t{1} << 30, &told); };
  RuntimeFleet fleet(options);
  ProfileAnswer profile;
  fleet.runtime(0).Profile(fleet.Profile(), profile.callback());
  ASSERT_TRUE(profile.Get().ok());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_GT(told[0].rooms, int64_t{1} << 28);
  EXPECT_TRUE(told[0].packed_weights) << "as in training";
}

TEST_F(StageRuntimeFaultTest, AShardThatCannotBeWrittenLeavesTheStageRunning) {
  RuntimeFleet fleet(Options(1));
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 1).ok());
  fleet.file_system().SetCapacity(100);
  const auto failed = fleet.Checkpoint(1, 1, "/a/full");
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(FaultText(failed.status()), HasSubstr("stage 0, job a term 1 generation 1 step 1"));
  fleet.file_system().SetCapacity(1 << 20);
  EXPECT_TRUE(fleet.Checkpoint(1, 1, "/a/again").ok());
  EXPECT_TRUE(fleet.TrainSteps(1, 1, 2).ok());
}

}  // namespace
}  // namespace stagecoach
