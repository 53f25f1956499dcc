#include "coordinator/job/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/job/failure_class.h"
#include "coordinator/job/job_json.h"
#include "coordinator/job/job_script_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::filesystem::path Transcripts() {
  return std::filesystem::path(STAGECOACH_SOURCE_DIR) / "coordinator" / "job" / "testdata";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Blocks: lines of input, four dashes, what they did, an empty line. Comments start with '#'.
std::string Replay(const std::string& transcript) {
  JobScript script;
  std::string replayed, output;
  bool in_output = false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(transcript, '\n'))) {
    if (line == "----") {
      absl::StrAppend(&replayed, "----\n", output, "\n");
      output.clear();
      in_output = true;
    } else if (in_output) {
      in_output = !line.empty();
    } else if (!line.empty()) {
      absl::StrAppend(&replayed, line, "\n");
      if (line[0] != '#') output = absl::StrCat(output, script.Run(line));
    }
  }
  return replayed;
}

TEST(JobStateTest, BehavesAsTheTranscriptsSay) {
  int transcripts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Transcripts())) {
    if (entry.path().extension() != ".txt") continue;
    ++transcripts;
    const std::string expected = ReadFile(entry.path());
    const std::string actual = Replay(expected);
    const char* rewrite = std::getenv("STAGECOACH_REWRITE");
    if (rewrite != nullptr && std::string(rewrite) == "1") {
      std::ofstream(entry.path(), std::ios::binary) << actual;
    } else {
      EXPECT_EQ(actual, expected) << entry.path() << "; STAGECOACH_REWRITE=1 rewrites it";
    }
  }
  EXPECT_GE(transcripts, 5);
}

// How many steps a job runs until it asks for a snapshot; 0: none in `most`.
int StepsToSnapshot(JobScript* script, int most) {
  for (int step = 1; step <= most; ++step) {
    if (script->Run("all").find(" snapshot") != std::string::npos) return step;
  }
  return 0;
}

// A step of two stages takes a quarter of a second here.
TEST(JobStateTest, SnapshotsCostAShareOfTheTimeAndComeNoMoreOftenThanALossIsMended) {
  for (const auto& [options, first, next] :
       std::vector<std::tuple<std::string, int, int>>{{"snapshots=5", 5, 5},
                                                      {"snapshots=auto", 12, 12},
                                                      {"snapshots=auto cost=0.07", 12, 12},
                                                      {"snapshots=auto cost=0.21", 12, 24},
                                                      {"snapshots=0", 0, 0}}) {
    JobScript script;
    script.Run("job stages=2 steps=99 checkpoint=0 " + options);
    for (const char* line : {"open", "offer a:1 b:1", "all"}) script.Run(line);
    EXPECT_EQ(StepsToSnapshot(&script, 40), first) << options;
    EXPECT_EQ(StepsToSnapshot(&script, 40), next) << options;
  }
}

// Seen: stages that a snapshot ended, for want of memory, took the next one as the first thing
// behind their load, for ever.
TEST(JobStateTest, ASnapshotThatNeverEndsIsNotTheFirstThingBehindEachLoad) {
  JobScript script;
  script.Run("job stages=2 steps=99 checkpoint=0 snapshots=1 stay=1");
  for (const char* line : {"open", "offer a:1 b:1", "all", "all"}) script.Run(line);
  int begins = 0;
  for (int loss = 1; loss <= 6; ++loss) {
    script.Run(absl::StrCat("lost b ", loss));
    if (script.state().activity == Activity::kBackOff) script.Run("wait 60");
    script.Run(absl::StrCat("offer a:1 b:", loss + 1));
    script.Run("held 0 1:0-3 1:3-5");
    script.Run("held 1");
    EXPECT_EQ(script.state().step, 1u);
    begins += script.Run("all").find(" snapshot") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(begins, 2);
}

// A job in every activity there is, in the phases in which it occurs.
std::vector<JobScript> JobsInEveryState() {
  const std::vector<std::string> lines = {
      "job checkpoint=1 evaluation=1 steps=2 profile=1 resume=b hold=1 probe=1",
      "open",
      "found step=1 job=b",
      "offer a:1 b:1",
      "profiled",
      "planned",
      "probed",
      "all",
      "checked",
      "all",
      "all",
      "all",
      "all",
      "begun",
      "all",
      "committed",
      "exported"};
  std::vector<JobScript> scripts;
  JobScript script;
  for (const std::string& line : lines) {
    script.Run(line);
    scripts.push_back(script);
  }
  JobScript in_memory;
  for (const char* line : {"job snapshots=1", "open", "offer a:1 b:1", "all", "all", "all", "all",
                           "lost b 1", "offer a:1 b:2"}) {
    in_memory.Run(line);
  }
  scripts.push_back(in_memory);
  JobScript writing;
  for (const char* line : {"job write=6", "open", "offer a:1 b:1", "all", "all"}) {
    writing.Run(line);
  }
  scripts.push_back(writing);
  JobScript recovering = scripts[9];
  recovering.Run("lost a 1");
  scripts.push_back(recovering);
  recovering.Run("found none");
  scripts.push_back(recovering);
  recovering.Run("found step=1 job=b");
  scripts.push_back(recovering);
  for (int setback = 0; setback < 3; ++setback) {
    recovering.Run("restart term=5");
    scripts.push_back(recovering);
  }
  return scripts;
}

std::vector<decltype(JobEvent::kind)> EventsWith(
    const Fence& fence, const absl::Status& failure = absl::InternalError("x")) {
  std::vector<decltype(JobEvent::kind)> events;
  for (const int stage : {-1, 0, 1, 99}) {
    events.push_back(Loaded{fence, stage, LoadResult{}});
    events.push_back(Loaded{fence, stage, absl::UnavailableError("x")});
    events.push_back(SnapshotsFound{fence, stage, std::vector<HeldShard>{}});
    events.push_back(SnapshotsFound{fence, stage, std::vector<HeldShard>{HeldShard{}}});
    events.push_back(SnapshotsFound{fence, stage, absl::UnavailableError("x")});
    events.push_back(Reported{fence, stage, StepReport{}});
    events.push_back(Reported{fence, stage, failure});
    events.push_back(ShardWritten{fence, stage, ShardInfo{}});
    events.push_back(ShardWritten{fence, stage, absl::ResourceExhaustedError("x")});
  }
  events.push_back(FolderProbed{fence, absl::PermissionDeniedError("x")});
  events.push_back(FolderChecked{fence, {}});
  events.push_back(FolderChecked{fence, {{-1, absl::NotFoundError("x")}}});
  events.push_back(FolderChecked{fence, {{0, absl::NotFoundError("x")}}});
  events.push_back(CheckpointSearched{fence, absl::NotFoundError("x"), {"broken"}});
  events.push_back(CheckpointSearched{fence, FoundCheckpoint{}, {}});
  events.push_back(Profiled{fence, std::vector<LayerProfile>{}});
  events.push_back(Profiled{fence, absl::CancelledError("x")});
  events.push_back(Planned{fence, absl::InvalidArgumentError("x")});
  events.push_back(Planned{fence, JobPlan{}});
  events.push_back(CheckpointBegun{fence, absl::DataLossError("x")});
  events.push_back(CheckpointCommitted{fence, absl::AbortedError("x")});
  events.push_back(CheckpointCommitted{fence, CheckpointRef{}});
  events.push_back(WeightsExported{fence, ExportedWeights{}});
  events.push_back(WeightsExported{fence, absl::NotFoundError("x")});
  return events;
}

std::string ActivityOf(const JobState& state) {
  return absl::StrCat(JobPhaseName(state.phase), "/", ActivityName(state.activity));
}

TEST(JobStateTest, ReachesEveryActivityInTheTestsBelow) {
  std::set<Activity> seen;
  for (const JobScript& script : JobsInEveryState()) seen.insert(script.state().activity);
  EXPECT_EQ(seen.size(), static_cast<size_t>(Activity::kEnded) + 1);
}

TEST(JobStateTest, IgnoresEveryStaleAnswerInEveryState) {
  for (const JobScript& script : JobsInEveryState()) {
    const JobState& state = script.state();
    std::vector<Fence> fences(6, FenceOf(state));
    fences[0].attempt += 1;
    fences[1].attempt -= 1;
    fences[2].generation -= 1;
    fences[3].generation += 1;
    fences[4].term -= 1;
    fences[5].step += 1;
    for (const Fence& fence : fences) {
      for (const auto& event : EventsWith(fence, absl::UnavailableError("x"))) {
        const Transition next = Apply(state, {"a", {script.now(), 0}, event}).value();
        EXPECT_EQ(EncodeJobState(next.state), EncodeJobState(state)) << ActivityOf(state);
        EXPECT_EQ(FenceOf(next.state), FenceOf(state)) << ActivityOf(state);
        EXPECT_EQ(next.state.stale_events, state.stale_events + 1) << ActivityOf(state);
        EXPECT_EQ(next.state.activity, state.activity);
        EXPECT_THAT(next.records, IsEmpty());
        EXPECT_THAT(next.actions, IsEmpty()) << ActivityOf(state) << " " << event.index();
      }
    }
  }
}

// Whatever comes, in whatever state: no crash, a legal state, records numbered without a gap, and
// an ended job stays as it ended.
TEST(JobStateTest, TakesEveryEventInEveryState) {
  for (const JobScript& script : JobsInEveryState()) {
    const JobState& state = script.state();
    std::vector<decltype(JobEvent::kind)> events = EventsWith(FenceOf(state));
    events.push_back(CheckpointBegun{FenceOf(state), std::string("/t")});
    events.push_back(FolderProbed{FenceOf(state), FolderProbe{"/t", "s"}});
    events.push_back(JobOpened{2, true});
    events.push_back(JobOpened{2, false});
    events.push_back(StagesOffered{});
    events.push_back(StagesOffered{std::vector<StageRegistration>(1)});
    events.push_back(StagesOffered{std::vector<StageRegistration>(2)});
    events.push_back(StagesOffered{std::vector<StageRegistration>(50)});
    events.push_back(StagesShort{2, 1, 1});
    events.push_back(StageLost{"a", "1", "x"});
    events.push_back(StageLost{"a", "2", "x"});
    for (const uint64_t generation : {state.generation - 1, state.generation}) {
      Fence fence = FenceOf(state);
      fence.generation = generation;
      events.push_back(StageDied{"a", {"SIGSEGV", fence, MicroBatchId(0), "forward", ""}});
    }
    events.push_back(DeadlinePassed{});
    events.push_back(CancelRequested{});
    events.push_back(SaveRequested{});
    for (const double later : {0.0, 1e6}) {
      for (const auto& event : events) {
        const Transition next = Apply(state, {"a", {script.now() + later, 0}, event}).value();
        EXPECT_EQ(IsTerminal(next.state.phase), next.state.activity == Activity::kEnded);
        EXPECT_GE(next.state.generation, state.generation);
        uint64_t number = state.records;
        for (const JobRecord& record : next.records) EXPECT_EQ(record.number, ++number);
        EXPECT_EQ(next.state.records, number);
        if (!IsTerminal(state.phase)) continue;
        EXPECT_EQ(EncodeJobState(next.state), EncodeJobState(state));
        EXPECT_THAT(next.records, IsEmpty());
      }
    }
  }
}

// Of these a job has any number: testdata/patience.txt.
TEST(JobStateTest, WhatEndsAStepWithAConnectionIsTheWorldsDoing) {
  using enum absl::StatusCode;
  for (const absl::StatusCode code :
       {kUnavailable, kAborted, kDataLoss, kDeadlineExceeded, kCancelled}) {
    EXPECT_EQ(ClassOf(Activity::kTrain, absl::Status(code, ""), true), FailureClass::kWorld)
        << code;
  }
}

// A card's workspace alone is above these limits, a small job on a host is far below.
TEST(JobStateTest, CountsWhatACardNeedsForTheStagesThatRegisteredOne) {
  const auto offer = [](const std::string& second_device) {
    JobScript script;
    for (const char* line : {"job stages=2 steps=4", "open"}) script.Run(line);
    std::vector<StageRegistration> stages(2);
    for (StageRegistration& stage : stages) {
      stage.device = "cpu";
      stage.memory_limit_bytes = int64_t{32} << 20;
    }
    stages[1].device = second_device;
    if (second_device != "cpu") stages[1].card = CardProfile{};
    return script.Apply(StagesOffered{stages});
  };
  EXPECT_THAT(offer("cpu"), HasSubstr("load stage=1"));
  EXPECT_THAT(offer("cuda:0"), HasSubstr("plan: stage 1 with layers"));
}

TEST(JobStateTest, APlanNamesWhatAStageHasNoKernelFor) {
  JobScript script;
  for (const char* line : {"job stages=2 steps=4", "open"}) script.Run(line);
  std::vector<StageRegistration> stages(2);
  stages[1].name = "b";
  stages[1].device = "cuda:0";
  stages[1].without_kernels = {"linear_weight_gradient"};
  EXPECT_THAT(script.Apply(StagesOffered{stages}),
              testing::AllOf(HasSubstr("stage 1 (b, device cuda:0) has no kernel for operation "
                                       "\"linear_weight_gradient\" of layer "),
                             HasSubstr("use stages with another device")));
}

// Symptom: the spec of a job in epochs was shown with the steps that they came to, and could not be
// submitted again.
TEST(JobStateTest, AViewTellsWhatEpochsComeToBesideTheSpec) {
  JobScript script;
  for (const char* line : {"job stages=1 epochs=2", "open", "offer a:1"}) script.Run(line);
  EXPECT_EQ(ViewOf(script.state()).total_steps, 0) << "nobody has read the data yet";
  script.Run("loaded 0");
  const JobView view = ViewOf(script.state());
  EXPECT_EQ(view.total_steps, TotalSteps(script.state()));
  EXPECT_GT(view.total_steps, 0);
  EXPECT_EQ(*view.spec, script.state().job->spec);
  EXPECT_EQ(view.spec->training.steps, 0);
}

// Symptom: while a job of three stages waited for a lost one, the page and describe called it K = 2
// and stage 2 "stage 1". Cause: places were counted off the stages that were left.
TEST(JobStateTest, TheStagesThatAreLeftKeepTheirPlacesUntilTheJobIsPlacedAnew) {
  JobScript script;
  for (const char* line : {"job stages=3 steps=9 fewer=1", "open", "offer a:1 b:1 c:1", "all"}) {
    script.Run(line);
  }
  const auto places = [&script] {
    const JobView view = ViewOf(script.state());
    std::string text = absl::StrCat("K=", view.pipeline_stages);
    for (const StageAssignment& stage : view.stages) {
      absl::StrAppend(&text, " ", stage.stage_name, ":", stage.stage);
    }
    return text;
  };
  EXPECT_EQ(places(), "K=3 a:0 b:1 c:2");
  script.Run("lost b 1");
  EXPECT_EQ(places(), "K=3 a:0 c:2");
  for (const char* line : {"found none", "wait 60", "offer a:1 c:1"}) script.Run(line);
  EXPECT_EQ(places(), "K=2 a:0 c:1");
}

TEST(JobStateTest, EndsFromEveryLiveStateByCancelWithNothingLeftRunning) {
  for (const JobScript& script : JobsInEveryState()) {
    const JobState& state = script.state();
    if (IsTerminal(state.phase)) continue;
    const Transition next = Apply(state, {"a", {script.now(), 0}, CancelRequested{}}).value();
    EXPECT_EQ(next.state.phase, JobPhase::kCancelled);
    size_t released = 0;
    for (const JobAction& action : next.actions) {
      released += std::holds_alternative<SendRelease>(action);
    }
    EXPECT_EQ(released, state.slots.size()) << ActivityOf(state);
  }
}

TEST(JobStateTest, RefusesAnEventOfAnotherJob) {
  JobScript script;
  script.Run("job");
  EXPECT_TRUE(
      absl::IsInvalidArgument(Apply(script.state(), {"b", {0, 0}, CancelRequested{}}).status()));
}

TEST(JobStateTest, SurvivesTheJournalInEveryState) {
  for (const JobScript& script : JobsInEveryState()) {
    const JobState& state = script.state();
    JobState back = NewJobState(state.job, 9, state.limits);
    ASSERT_TRUE(DecodeJobState(EncodeJobState(state), &back).ok());
    EXPECT_EQ(EncodeJobState(back), EncodeJobState(state));
    // All stages of an ended job were stage 0 after a restart.
    ASSERT_EQ(back.slots.size(), state.slots.size());
    for (size_t k = 0; k < back.slots.size(); ++k) {
      EXPECT_EQ(back.slots[k].place, state.slots[k].place);
    }
  }
  JobState state = JobsInEveryState()[0].state();
  for (const char* text : {"", "{", "[]", "{\"phase\":77}", "{\"phase\":\"x\"}"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeJobState(text, &state))) << text;
  }
}

TEST(JobStateTest, ALossThatIsNotFiniteSurvivesTheJournal) {
  JobState state = JobsInEveryState()[0].state();
  state.results.loss = std::numeric_limits<double>::quiet_NaN();
  state.results.evaluation_loss = -std::numeric_limits<double>::infinity();
  state.nonfinite.since = 7;
  state.nonfinite.evaluation_since = 6;
  state.origin.applied_steps = 5;
  JobState back = NewJobState(state.job, 9, state.limits);
  ASSERT_TRUE(DecodeJobState(EncodeJobState(state), &back).ok());
  EXPECT_TRUE(std::isnan(back.results.loss));
  EXPECT_EQ(back.results.evaluation_loss, state.results.evaluation_loss);
  EXPECT_EQ(back.nonfinite.since, 7u);
  EXPECT_EQ(back.nonfinite.evaluation_since, 6u);
  EXPECT_EQ(back.origin.applied_steps, 5u);
}

// A job whose averages overflowed in an evaluation was set aside by the next coordinator.
TEST(JobStateTest, AMeasureThatIsNoNumberIsLeftOutOfWhatTheJournalSays) {
  JobState state = JobsInEveryState()[0].state();
  state.results.evaluation_measures = {{"accuracy", 0.5},
                                       {"average_loss", std::numeric_limits<double>::quiet_NaN()}};
  JobState back = NewJobState(state.job, 9, state.limits);
  ASSERT_TRUE(DecodeJobState(EncodeJobState(state), &back).ok());
  ASSERT_EQ(back.results.evaluation_measures.size(), 1u);
  EXPECT_EQ(back.results.evaluation_measures[0].name, "accuracy");
}

// Symptom: one byte of a stage's error that is no UTF-8 broke `list` for good: a message of
// protobuf holds no such text.
TEST(JobStateTest, AnErrorsBytesBecomeTextBeforeTheyAreKept) {
  JobScript script;
  for (const char* line :
       {"job stages=2 steps=4", "open", "offer a:1 b:1", "found none", "profiled"}) {
    script.Run(line);
  }
  ASSERT_EQ(script.state().activity, Activity::kLoad);
  script.Apply(
      Loaded{FenceOf(script.state()), 0,
             absl::InvalidArgumentError("/data/\xff\x1b[2J\xe2\x80\xae.txt: no such file")});
  EXPECT_EQ(script.state().phase, JobPhase::kFailed);
  const std::string shown = R"(/data/\xff\x1b[2J\xe2\x80\xae.txt: no such file)";
  EXPECT_THAT(script.state().message, HasSubstr(shown));
}

TEST(JobStateTest, AKeptMessageIsShownWithoutCommandsToTerminals) {
  JobScript script;
  script.Run("job stages=2 steps=4");
  JobState state = script.state();
  state.message = "\x1b[31mred";
  JobState read = script.state();
  ASSERT_TRUE(DecodeJobState(EncodeJobState(state), &read).ok());
  EXPECT_EQ(read.message, "\\x1b[31mred");
}

}  // namespace
}  // namespace stagecoach
