// Checkpoints beside the steps, as the pure transition has them. testdata/beside.txt tells their
// course.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/job/job_json.h"
#include "coordinator/job/job_script_testing.h"
#include "coordinator/job/job_transition.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Events = std::vector<decltype(JobEvent::kind)>;

Events AnswersWith(const Fence& fence) {
  Events events = {CheckpointBegun{fence, std::string("/t")},
                   CheckpointBegun{fence, absl::ResourceExhaustedError("x")},
                   CheckpointCommitted{fence, CheckpointRef{}},
                   CheckpointCommitted{fence, absl::DataLossError("x")}};
  for (const int stage : {-1, 0, 1, 99}) {
    events.push_back(ShardWritten{fence, stage, ShardInfo{}});
    events.push_back(ShardWritten{fence, stage, absl::ResourceExhaustedError("x")});
    events.push_back(ShardWritten{fence, stage, absl::UnavailableError("x")});
    events.push_back(ShardWritten{fence, stage, absl::InvalidArgumentError("x")});
    events.push_back(Reported{fence, stage, StepReport{.shard_copied = true}});
    events.push_back(Reported{fence, stage, absl::InternalError("x")});
  }
  return events;
}

// A checkpoint beside the steps, at each of its stages: while a step runs, and awaited.
std::vector<JobScript> JobsBeside() {
  std::vector<JobScript> scripts;
  JobScript script;
  for (const char* line :
       {"job checkpoint=2 steps=9", "open", "offer a:1 b:1", "all", "all", "all", "all copied"}) {
    script.Run(line);
  }
  for (const char* line : {"begun", "shard 1", "shard 0", ""}) {
    scripts.push_back(script);
    JobScript awaited = script;
    awaited.Run("all");
    scripts.push_back(awaited);
    awaited.Run("all");
    scripts.push_back(awaited);
    script.Run(line);
  }
  return scripts;
}

TEST(JobBesideTest, TakesEveryEventBesideTheSteps) {
  for (const JobScript& script : JobsBeside()) {
    const JobState& state = script.state();
    ASSERT_TRUE(state.checkpoints.writing.beside.has_value());
    const Fence fence = state.checkpoints.writing.beside->fence;
    Events events = AnswersWith(fence);
    for (const auto& event : AnswersWith(FenceOf(state))) events.push_back(event);
    events.push_back(StageLost{"a", "1", "x"});
    events.push_back(DeadlinePassed{});
    events.push_back(JobOpened{2, true});
    events.push_back(TermRaised{3, "x"});
    events.push_back(CancelRequested{});
    events.push_back(SaveRequested{});
    for (const double later : {0.0, 1e6}) {
      for (const auto& event : events) {
        const Transition next = Apply(state, {"a", {script.now() + later, 0}, event}).value();
        const auto& beside = next.state.checkpoints.writing.beside;
        // What is under way belongs to the generation at hand, and has a deadline.
        EXPECT_TRUE(!beside.has_value() || beside->fence.generation == next.state.generation);
        EXPECT_EQ(beside.has_value(), BesideDeadline(next.state) > 0);
        EXPECT_TRUE(!IsTerminal(next.state.phase) || !beside.has_value());
        uint64_t number = state.records;
        for (const JobRecord& record : next.records) EXPECT_EQ(record.number, ++number);
      }
    }
  }
}

// Of an older copy, of another stage of the write, or from a shard that is there already.
TEST(JobBesideTest, IgnoresWhatIsNotOfTheCheckpointBesideTheSteps) {
  for (const JobScript& script : JobsBeside()) {
    const JobState& state = script.state();
    const WriteBeside& beside = *state.checkpoints.writing.beside;
    Fence other = beside.fence;
    --other.attempt;
    Events events = {
        ShardWritten{other, 0, ShardInfo{}}, CheckpointCommitted{other, CheckpointRef{}},
        ShardWritten{beside.fence, -1, ShardInfo{}}, ShardWritten{beside.fence, 9, ShardInfo{}}};
    if (beside.at != Activity::kCommit) {
      events.push_back(CheckpointCommitted{beside.fence, CheckpointRef{}});
    }
    if (beside.at != Activity::kWriteShards || beside.answered[1]) {
      events.push_back(ShardWritten{beside.fence, 1, ShardInfo{}});
    }
    for (const auto& event : events) {
      const Transition next = Apply(state, {"a", {script.now(), 0}, event}).value();
      EXPECT_EQ(next.state.stale_events, state.stale_events + 1);
      EXPECT_EQ(EncodeJobState(next.state), EncodeJobState(state));
      EXPECT_THAT(next.actions, IsEmpty());
    }
  }
}

// By time: what counts is what training waited, here 100 s of a copy. None begins while one is under
// way.
TEST(JobBesideTest, TheIntervalOfCheckpointsFollowsWhatTrainingWaits) {
  JobScript script;
  for (const char* line :
       {"job stages=1 steps=99 checkpoint=0 tick=100", "open", "offer a:1", "all", "reported 0"}) {
    script.Run(line);
  }
  EXPECT_THAT(script.Run("reported 0"), HasSubstr("nothing step=2 copy"));
  script.Run("reported 0 copied");
  for (int i = 0; i < 5; ++i) EXPECT_THAT(script.Run("reported 0"), HasSubstr("train"));
  for (const char* line : {"begun", "shard 0", "committed"}) script.Run(line);
  int steps = 5;
  while (script.Run("reported 0").find(" copy") == std::string::npos) ASSERT_LT(++steps, 90);
  EXPECT_EQ(steps + 1, 26) << "100 s / 3.5 % are 2857 s; the sixth step took 400 s";
}

}  // namespace
}  // namespace stagecoach
