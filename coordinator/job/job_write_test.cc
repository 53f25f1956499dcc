// A job that writes texts, where a transcript (testdata/writing.txt) does not show it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "coordinator/job/job_script_testing.h"
#include "coordinator/job/resume_check.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

// A job with its first command at hand; of one stage unless the options say otherwise.
JobScript Writing(const std::string& options) {
  const bool two = options.find("stages=2") != std::string::npos;
  JobScript script;
  for (const std::string& line :
       {absl::StrCat("job ", two ? "" : "stages=1 ", options), std::string("open"),
        std::string(two ? "offer a:1 b:1" : "offer a:1"), std::string("all")}) {
    script.Run(line);
  }
  EXPECT_EQ(script.state().activity, Activity::kWrite);
  return script;
}

Transition Report(const JobState& state, const StepReport& report, double now) {
  return Apply(state, {"a", {now, 0}, Reported{FenceOf(state), 0, report}}).value();
}

Transition Report(const JobScript& script, const StepReport& report, double seconds = 0) {
  return Report(script.state(), report, script.now() + seconds);
}

// A job of one stage that translates, with this mini-batch at hand.
JobState Translating(int lines, uint64_t batch) {
  JobState state = Writing(absl::StrCat("write=", lines)).state();
  auto job = std::make_shared<JobDefinition>(*state.job);
  job->spec.write->generate.reset();
  job->spec.write->translate = TranslateSpec{};
  state.job = std::move(job);
  state.step = batch;
  return state;
}

// What the job says of a report that its stage alone may be to blame for; empty: it is taken.
std::string Refusal(const JobState& state, const StepReport& report) {
  const Transition next = Report(state, report, 1);
  if (next.state.results.recoveries == 0) return "";
  EXPECT_EQ(next.state.results.faults.size(), 1u);
  return next.state.message;
}

std::string Refusal(const JobState& state, const WrittenPiece& piece) {
  StepReport report;
  report.written = {piece};
  return Refusal(state, report);
}

// The stage of the job fails for a reason of its own, and it loads again.
void FailAndLoad(JobScript& script) {
  script.Run("reported 0 INTERNAL");
  while (script.state().activity == Activity::kBackOff) script.Run("wait 60");
  if (script.state().activity != Activity::kWaitStages) return;
  script.Run("offer a:1");
  script.Run("all");
}

TEST(JobWriteTest, ManyTextsOfOneCommandAreSeveralRecordsInTheirOrder) {
  const JobScript script = Writing("write=1");
  StepReport report;
  for (int i = 0; i < 5000; ++i) {
    report.written.push_back({.offset = 1000 * i, .text = std::string(1000, 'a')});
  }
  report.written.push_back({.offset = 5'000'000, .done = true});
  report.write_over = true;
  const Transition next = Report(script, report);
  std::vector<WrittenPiece> told;
  for (const JobRecord& record : next.records) {
    size_t bytes = 0;
    for (const WrittenPiece& piece : record.written) bytes += piece.text.size();
    EXPECT_LE(bytes, size_t{256} << 10);
    told.insert(told.end(), record.written.begin(), record.written.end());
  }
  EXPECT_GT(next.records.size(), 5'000'000u >> 18);
  EXPECT_EQ(told, report.written);
  EXPECT_EQ(next.records.back().kind, JobRecord::Kind::kFinished);
}

TEST(JobWriteTest, TheViewCountsMiniBatchesAndTheTokensOfTheLastOne) {
  JobScript script = Writing("write=9");
  JobView view = ViewOf(script.state());
  EXPECT_EQ(view.total_steps, 3);
  EXPECT_EQ(view.step, 0u);
  EXPECT_EQ(view.phase, JobPhase::kRunning);
  StepReport report;
  report.written = {{.line = 0, .done = true, .tokens = 30},
                    {.line = 1, .text = "a"},
                    {.line = 3, .done = true},
                    {.line = 1, .offset = 1, .done = true}};
  report.memory_peak.parameters = 77;
  script.Run("all silent");
  report.written.push_back({.line = 2, .done = true, .tokens = 10});
  report.write_over = true;
  const double begun = script.state().writing.begun_seconds;
  view = ViewOf(Report(script, report, begun + 2 - script.now()).state);
  EXPECT_EQ(view.step, 1u);
  EXPECT_EQ(view.tokens_per_second, 20) << "40 tokens in the two seconds of the mini-batch";
  EXPECT_EQ(view.step_seconds, begun + 2 - script.now());
  EXPECT_EQ(view.stages.at(0).memory_peak.parameters, 77);
  EXPECT_FALSE(view.has_loss);
}

TEST(JobWriteTest, StagesAreToldThatThisLoadTakesNoSnapshots) {
  const JobScript script = Writing("write=1 snapshots=1 stages=2");
  const Transition next = Report(script, StepReport{});
  ASSERT_EQ(next.actions.size(), 0u) << "the other stage has not answered";
  Fence fence = FenceOf(next.state);
  const Transition all = Apply(next.state, {"a", {}, Reported{fence, 1, StepReport{}}}).value();
  ASSERT_EQ(all.actions.size(), 2u);
  for (const JobAction& action : all.actions) {
    EXPECT_TRUE(std::get<SendRun>(action).command.snapshots_end);
  }
}

TEST(JobWriteTest, RoundsHaveAnUpperBoundAndALowerOne) {
  JobScript script = Writing("write=1 tick=0.0625");
  for (int i = 0; i < 12; ++i) script.Run("all");
  EXPECT_EQ(script.state().writing.rounds, 1024);
  for (int i = 0; i < 12; ++i) {
    script.Run("wait 1");
    script.Run("all");
  }
  EXPECT_EQ(script.state().writing.rounds, 1);
}

// Seconds of the commands of a mini-batch whose texts have so many rounds, each of so many seconds.
std::vector<double> WriteMiniBatch(JobState& state, double* now, int64_t rounds, double each) {
  std::vector<double> seconds;
  const auto line = 4 * static_cast<int64_t>(state.step);
  for (int64_t left = rounds; left > 0;) {
    const int64_t run = std::min(left, state.writing.rounds);
    left -= run;
    seconds.push_back(static_cast<double>(run) * each);
    *now += seconds.back();
    StepReport report;
    for (int64_t i = line; left == 0 && i < line + 4; ++i) {
      report.written.push_back({.line = i, .done = true});
    }
    report.write_over = left == 0;
    state = Report(state, report, *now).state;
  }
  return seconds;
}

TEST(JobWriteTest, AfterQuickMiniBatchesASlowOneHasNoCommandOfManySeconds) {
  for (const double quick : {1e-6, 1e-5, 1e-4, 1e-3, 1e-2}) {
    SCOPED_TRACE(quick);
    JobState state = Writing("write=400").state();
    double now = state.operation.started_seconds;
    for (int i = 0; i < 20; ++i) WriteMiniBatch(state, &now, 500, quick);
    const size_t commands = WriteMiniBatch(state, &now, 500, quick).size();
    EXPECT_LE(static_cast<double>(commands), 8 + 500 * quick / 0.1);
    const std::vector<double> slow = WriteMiniBatch(state, &now, 500, 100 * quick);
    EXPECT_LE(*std::max_element(slow.begin(), slow.end()), 1.1);
    EXPECT_EQ(state.step, 22u);
  }
}

TEST(JobWriteTest, ASlowCommandIsFollowedByOneOfTheRightLength) {
  JobState state = Writing("write=4").state();
  double now = state.operation.started_seconds;
  state.writing.rounds = 1000;
  state = Report(state, StepReport{}, now + 100).state;
  EXPECT_EQ(state.writing.rounds, 4) << "a round takes 0.1 s";
}

TEST(JobWriteTest, TheEndOfAMiniBatchTellsNothingOfTheCostOfRounds) {
  JobState state = Writing("write=8").state();
  double now = state.operation.started_seconds;
  EXPECT_EQ(WriteMiniBatch(state, &now, 1, 0.001).size(), 1u);
  EXPECT_EQ(state.writing.rounds, 1);
}

TEST(JobWriteTest, TextsOfOtherLinesThanThoseAtHandAreTheStagesFailure) {
  const JobState state = Writing("write=6").state();
  EXPECT_EQ(Refusal(state, WrittenPiece{.line = 3}), "");
  for (const int64_t line : {-1, 4, 5, 6}) {
    EXPECT_THAT(Refusal(state, WrittenPiece{.line = line}),
                HasSubstr(absl::StrCat("wrote of line ", line, " ")));
  }
  EXPECT_EQ(Refusal(state, WrittenPiece{.offset = int64_t{1} << 30}), "");
  EXPECT_THAT(Refusal(state, WrittenPiece{.offset = (int64_t{1} << 30) + 1}),
              HasSubstr("from byte 1073741825 on"));
  EXPECT_THAT(Refusal(state, WrittenPiece{.offset = -1}), HasSubstr("from byte -1 on"));
}

// Sources of 16 groups are sorted by their lengths, here those of 32 lines.
TEST(JobWriteTest, TranslationsAreOfAnyLineThatIsSortedWithThoseAtHand) {
  for (const uint64_t batch : {0, 7}) {
    EXPECT_EQ(Refusal(Translating(50, batch), WrittenPiece{.line = 0}), "") << batch;
    EXPECT_EQ(Refusal(Translating(50, batch), WrittenPiece{.line = 31}), "") << batch;
    EXPECT_THAT(Refusal(Translating(50, batch), WrittenPiece{.line = 32}), HasSubstr("line 32"));
  }
  EXPECT_THAT(Refusal(Translating(50, 8), WrittenPiece{.line = 31}), HasSubstr("line 31"));
  EXPECT_EQ(Refusal(Translating(50, 8), WrittenPiece{.line = 49}), "");
  EXPECT_THAT(Refusal(Translating(50, 8), WrittenPiece{.line = 50}), HasSubstr("line 50"));
}

// A mini-batch of 3 groups has lines of two windows.
TEST(JobWriteTest, AMiniBatchMayHaveLinesOfSeveralWindows) {
  const auto refusal = [](uint64_t batch, int64_t line) {
    JobState state = Translating(100, batch);
    auto job = std::make_shared<JobDefinition>(*state.job);
    job->spec.training.batch_size = 6;
    job->spec.training.micro_batches = 3;
    state.job = std::move(job);
    return Refusal(state, WrittenPiece{.line = line});
  };
  EXPECT_THAT(refusal(4, 32), HasSubstr("line 32")) << "places 24 to 29";
  EXPECT_EQ(refusal(5, 0), "") << "places 30 to 35";
  EXPECT_EQ(refusal(5, 63), "");
  EXPECT_THAT(refusal(5, 64), HasSubstr("line 64"));
  EXPECT_THAT(refusal(6, 31), HasSubstr("line 31")) << "places 36 to 41";
}

TEST(JobWriteTest, AMiniBatchEndsWithItsLastText) {
  JobState state = Writing("write=6").state();
  StepReport three, none, last;
  for (const int64_t line : {0, 1, 2}) three.written.push_back({.line = line, .done = true});
  none.write_over = last.write_over = true;
  last.written = {{.line = 3, .done = true}};
  EXPECT_THAT(Refusal(state, none), HasSubstr("ended mini-batch 0 with 0 of its 4 texts done"));
  state = Report(state, three, 1).state;
  EXPECT_THAT(Refusal(state, none), HasSubstr("with 3 of its 4 texts done"));
  state = Report(state, last, 1).state;
  EXPECT_EQ(state.step, 1u);
  last.written = {{.line = 4, .done = true}};
  EXPECT_THAT(Refusal(state, last), HasSubstr("ended mini-batch 1 with 1 of its 2 texts done"));
  last.written.push_back({.line = 5, .done = true});
  EXPECT_EQ(Report(state, last, 1).state.phase, JobPhase::kSucceeded);
}

TEST(JobWriteTest, FailuresAtOnePlaceOfAMiniBatchEndTheJob) {
  JobScript script = Writing("write=4");
  for (int failure = 1; failure <= 6; ++failure) {
    ASSERT_EQ(script.state().activity, Activity::kWrite) << failure;
    for (int i = 0; i < 3; ++i) script.Run("all");
    FailAndLoad(script);
  }
  EXPECT_EQ(script.state().phase, JobPhase::kFailed);
  EXPECT_THAT(script.state().message, HasSubstr("step 0 failed 6 times, on a"));
}

// A mini-batch may take hours: it was ended by a few faults that had nothing in common.
TEST(JobWriteTest, FailuresOfTriesThatComeFurtherEachEndNoJob) {
  JobScript script = Writing("write=4");
  for (int failure = 1; failure <= 12; ++failure) {
    for (int i = 0; i < failure; ++i) script.Run("all");
    FailAndLoad(script);
    ASSERT_EQ(script.state().activity, Activity::kWrite) << failure;
  }
  script.Run("all over");
  EXPECT_EQ(script.state().phase, JobPhase::kSucceeded);
}

// After so many commands of each try.
JobPhase PhaseAfterDeaths(const std::vector<int>& commands) {
  JobScript script = Writing("write=4");
  int generation = 0;
  for (const int number : commands) {
    for (int i = 0; i < number; ++i) script.Run("all");
    script.Run(absl::StrCat("lost a ", ++generation));
    script.Run(
        absl::StrCat("died a SIGSEGV generation=", generation, " step=0 instruction=forward"));
    while (script.state().activity == Activity::kBackOff) script.Run("wait 60");
    if (script.state().activity != Activity::kWaitStages) break;
    script.Run(absl::StrCat("offer a:", generation + 1));
    script.Run("all");
  }
  return script.state().phase;
}

TEST(JobWriteTest, DeathsEndTheJobIfTheyAreAtOnePlaceOfTheMiniBatch) {
  EXPECT_EQ(PhaseAfterDeaths({2, 2, 2}), JobPhase::kFailed);
  EXPECT_EQ(PhaseAfterDeaths({2, 1, 2}), JobPhase::kFailed) << "none came further";
  EXPECT_EQ(PhaseAfterDeaths({1, 2, 3, 4}), JobPhase::kRunning);
  EXPECT_EQ(PhaseAfterDeaths({2, 2, 3, 3}), JobPhase::kRunning);
}

// It may be slow for a long time and be as well as a job that trains.
TEST(JobWriteTest, LossesBetweenLongMiniBatchesNeverBackOff) {
  JobScript script = Writing("write=4");
  for (int loss = 1; loss <= 6; ++loss) {
    script.Run("wait 59");
    script.Run("all");
    script.Run("wait 59");
    script.Run("all");
    script.Run(absl::StrCat("lost a ", loss));
    ASSERT_EQ(script.state().activity, Activity::kWaitStages) << loss;
    script.Run(absl::StrCat("offer a:", loss + 1));
    script.Run("all");
  }
}

TEST(JobWriteTest, TakesTheWeightsOfAnyTrainingOfItsModel) {
  const JobScript script = Writing("write=1");
  const JobDefinition& writing = *script.state().job;
  Manifest manifest{.job = "b", .model_sha256 = writing.model_sha256};
  manifest.state = {.step = 999, .seed = writing.spec.seed + 1, .batch_size = 64};
  EXPECT_TRUE(CheckResume(writing, manifest, false).ok());
  JobDefinition training = writing;
  training.spec.write.reset();
  EXPECT_THAT(CheckResume(training, manifest, false).message(), HasSubstr("seed"));
  manifest.model_sha256 = "another";
  EXPECT_THAT(CheckResume(writing, manifest, false),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("model (sha256)")));
}

}  // namespace
}  // namespace stagecoach
