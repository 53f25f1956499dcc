// Following survives what a coordinator may do: break the stream, restart, be gone for good.
#include "services/cli/client/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "base/testing/manual_clock.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/commands/follow_view.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/testing/fake_job_client.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CollectingSink final : public RecordSink {
 public:
  void OnRecord(const v1::WatchJobResponse& record) override { numbers.push_back(record.number()); }
  void OnLoading(const v1::WatchJobResponse& record) override {
    loading.push_back(record.state().message());
  }
  void OnOutage(const absl::Status&) override {
    ++outages;
    if (during_outage) during_outage();
  }
  std::vector<uint64_t> numbers;
  std::vector<std::string> loading;
  int outages = 0;
  std::function<void()> during_outage;
};

class FollowTest : public testing::Test {
 protected:
  FollowTest() {
    client_.job.set_id("gpt-1");
    client_.job.set_state(v1::JOB_STATE_RUNNING);
    for (uint64_t number = 1; number <= 4; ++number) {
      v1::WatchJobResponse record;
      record.set_number(number);
      record.set_step(number);
      if (number < 4) {
        record.mutable_step_done()->set_loss(static_cast<double>(number));
      } else {
        record.mutable_finished()->set_state(v1::JOB_STATE_SUCCEEDED);
      }
      client_.records.push_back(record);
    }
    options_.first_backoff_seconds = 1e-4;
    options_.longest_backoff_seconds = 1e-3;
  }

  absl::StatusOr<v1::WatchJobResponse> Follow() {
    return FollowJob(client_, "gpt-1", options_, sink_, &stop_);
  }

  FakeJobClient client_;
  CollectingSink sink_;
  StopSignal stop_;
  FollowOptions options_;
};

TEST_F(FollowTest, ReadsToTheLastRecord) {
  const auto last = Follow();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->finished().state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(sink_.numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(sink_.outages, 0);
}

TEST_F(FollowTest, ResumesAfterTheLastRecordWhenTheCoordinatorRestarts) {
  client_.watches = {{2, absl::UnavailableError("socket closed")},
                     {0, absl::UnavailableError("connection refused")}};
  client_.reachable = absl::UnavailableError("connection refused");
  sink_.during_outage = [this] { client_.reachable = absl::OkStatus(); };
  ASSERT_TRUE(Follow().ok());
  EXPECT_THAT(sink_.numbers, ElementsAre(1, 2, 3, 4)) << "none twice, none missing";
  EXPECT_THAT(client_.watched_from, ElementsAre(0, 2, 2));
  EXPECT_EQ(sink_.outages, 1);
}

TEST_F(FollowTest, AQuietStreamThatReachesItsDeadlineIsNoOutage) {
  client_.watches = {{1, absl::DeadlineExceededError("10 minutes")},
                     {0, absl::DeadlineExceededError("10 minutes")}};
  ASSERT_TRUE(Follow().ok());
  EXPECT_EQ(sink_.outages, 0);
}

TEST_F(FollowTest, GivesUpWhenNobodyAnswersForTooLong) {
  ManualClock clock;
  options_.clock = &clock;
  for (int i = 0; i < 10; ++i) client_.watches.push_back({0, absl::UnavailableError("refused")});
  client_.reachable = absl::UnavailableError("connection refused");
  sink_.during_outage = [&clock] { clock.AdvanceNanos(61'000'000'000); };
  const absl::Status status = Follow().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no answer for 60 s"));
}

TEST_F(FollowTest, AJobThatIsUnknownIsNotAskedForAgain) {
  client_.watches = {{0, absl::NotFoundError("job gpt-1")}};
  EXPECT_EQ(Follow().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client_.watched_from.size(), 1u);
}

TEST_F(FollowTest, AStopEndsItWithItsReason) {
  client_.watches = {{1, absl::CancelledError("client")}};
  stop_.Request(absl::CancelledError("interrupted"));
  const absl::Status status = Follow().status();
  EXPECT_EQ(status.message(), "interrupted");
  EXPECT_EQ(ExitCodeOf(status), kExitInterrupted);
}

TEST_F(FollowTest, AnEndWhoseRecordIsGoneIsTakenFromTheJob) {
  client_.records.pop_back();
  client_.job.set_state(v1::JOB_STATE_FAILED);
  client_.job.set_message("stage 1: out of memory");
  const auto last = Follow();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->finished().message(), "stage 1: out of memory");
}

class CommandTest : public FollowTest {
 protected:
  CommandTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    // The commands own their client; this one is the test's.
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&client_);
    };
    spec_file_ = std::string(STAGECOACH_SOURCE_DIR) + "/examples/gpt-tiny.yaml";
  }

  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  CommandContext context_;
  std::string spec_file_;
};

TEST_F(CommandTest, DetachPrintsOnlyTheId) {
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  EXPECT_EQ(out_.str(), "mine\n");
  EXPECT_THAT(notes_.str(), testing::MatchesRegex("uploads .* in 1 file\n"));
}

TEST_F(CommandTest, DetachPrintsTheJobForPrograms) {
  context_.output = OutputFormat::kNdjson;
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  EXPECT_THAT(out_.str(), testing::StartsWith("{\"id\":\"mine\""));
  EXPECT_THAT(out_.str(), testing::EndsWith("}\n"));
}

TEST_F(CommandTest, SubmitFollowsAndExitsWithTheJobsCode) {
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "gpt-2"}, context_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("step=3/60 examples=48 loss=3.0000"));
  EXPECT_THAT(out_.str(), HasSubstr("job gpt-2 SUCCEEDED at step 4"));
  client_.records.back().mutable_finished()->set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(RunWatch("gpt-2", context_), 5);
  client_.records.back().mutable_finished()->set_state(v1::JOB_STATE_FAILED);
  EXPECT_EQ(RunWait("gpt-2", context_), 1);
}

// A path of a job file is the client's: what is there is what the stages get.
TEST_F(CommandTest, DataThatWillNotDoIsRefusedBeforeAnythingIsSent) {
  const TemporaryFolder folder;
  folder.Write("placeholder.txt", "short");
  const std::string text =
      R"({"name": "here", "model": {"gpt": {"layers": 2, "width": 8, "heads": 2,
      "context": 16, "vocabulary": 128}}, "data": {MORE"text": {"path": "placeholder.txt"}},
      "training": {"steps": 1, "batch_size": 1, "micro_batches": 1,
      "optimizer": {"sgd": {}}, "learning_rate": {"constant": {"peak": 0.1}}}})";
  const auto job = [&](const std::string& more) {
    return folder.Write("job.json", absl::StrReplaceAll(text, {{"MORE", more}}));
  };
  const std::string file = job("");
  EXPECT_EQ(RunSubmit({.file = file, .id = "mine", .detach = true}, context_), 2);
  EXPECT_THAT(notes_.str(), testing::AllOf(HasSubstr("of 5 bytes"), HasSubstr("on_stages")));
  EXPECT_EQ(client_.submits, 0);
  EXPECT_TRUE(client_.store.parts.empty());
  EXPECT_EQ(RunSubmit({.file = file, .dry_run = true}, context_), 0) << "a plan needs no data";
  EXPECT_EQ(RunValidate({.file = file}, context_), 2) << "who asks is told";
  EXPECT_EQ(RunValidate({.file = file, .data_elsewhere = true}, context_), 0);
  std::filesystem::remove(folder.File("placeholder.txt"));
  EXPECT_EQ(RunSubmit({.file = file, .id = "mine", .detach = true}, context_), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("No such file"));
  // The cluster, or its stages, have it.
  job(R"("on_stages": "/data", )");
  EXPECT_EQ(RunSubmit({.file = file, .id = "mine", .detach = true}, context_), 0) << notes_.str();
  EXPECT_EQ(client_.job.spec().data().on_stages(), "/data");
  EXPECT_EQ(client_.job.spec().data().text().path(), "placeholder.txt");
  EXPECT_EQ(RunValidate({.file = file}, context_), 0);
}

// Symptom: gigabytes travelled, and then the coordinator refused the job.
TEST_F(CommandTest, AJobThatIsThereWithOtherDataIsRefusedBeforeTheyTravel) {
  const TemporaryFolder folder;
  const std::string job = folder.Write("job.json", R"({"name": "here",
      "model": {"gpt": {"layers": 2, "width": 8, "heads": 2, "context": 16, "vocabulary": 128}},
      "data": {"text": {"path": "text.txt"}},
      "training": {"steps": 1, "batch_size": 1, "micro_batches": 1,
      "optimizer": {"sgd": {}}, "learning_rate": {"constant": {"peak": 0.1}}}})");
  folder.Write("text.txt", std::string(300, 'a'));
  const auto submit = [&](const std::string& id) {
    return RunSubmit({.file = job, .id = id, .detach = true}, context_);
  };
  ASSERT_EQ(submit("mine"), 0) << notes_.str();
  const int appends = client_.store.appends;
  folder.Write("text.txt", std::string(300, 'b'));
  EXPECT_NE(submit("mine"), 0);
  EXPECT_THAT(notes_.str(), testing::AllOf(HasSubstr("job mine"), HasSubstr("data.text.path"),
                                           HasSubstr("choose another --id")));
  EXPECT_EQ(client_.store.appends, appends);
  EXPECT_EQ(client_.submits, 1);
  // If the job's data are gone from the cluster, nobody can tell before the coordinator.
  const auto sets = std::exchange(client_.store.sets, {});
  EXPECT_NE(submit("mine"), 0);
  EXPECT_EQ(client_.submits, 2);
  EXPECT_EQ(submit("other"), 0);
}

TEST_F(CommandTest, ASubmissionBringsItsDataAndTheSecondOneFindsIt) {
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  ASSERT_EQ(client_.store.sets.size(), 1u);
  const std::string id = client_.store.sets.begin()->first;
  EXPECT_EQ(client_.job.spec().data().text().path(), "store:/data/" + id + "/LICENSE");
  EXPECT_THAT(notes_.str(), HasSubstr("uploads "));
  const int appends = client_.store.appends;
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0)
      << "the same job";
  EXPECT_EQ(client_.store.appends, appends);
  EXPECT_THAT(notes_.str(), HasSubstr("the cluster has the data: "));
}

// `plan` showed what `submit` then refused.
TEST_F(CommandTest, APlanOfMoreMicroBatchesThanACoordinatorTakesIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder.Write(
      "job.json", R"({"name": "many", "model": {"gpt": {"layers": 16, "width": 8, "heads": 2,
      "context": 16, "vocabulary": 128}}, "data": {"text": {"path": "/nowhere"}}, "pipeline":
      {"stages": auto, "min_stages": 17}, "training": {"steps": 1, "batch_size": 65536,
      "micro_batches": 65536, "optimizer": {"sgd": {}},
      "learning_rate": {"constant": {"peak": 0.1}}}})");
  EXPECT_EQ(RunPlan({.file = file}, context_), 2);
  EXPECT_EQ(RunPlan({.file = file, .stages = 17}, context_), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("with pipeline.stages=17 at most 15420"));
}

TEST_F(CommandTest, NdjsonHasNothingButEventsOnStandardOutput) {
  context_.output = OutputFormat::kNdjson;
  EXPECT_EQ(RunWatch("gpt-1", context_), 0);
  std::istringstream lines(out_.str());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_THAT(line, testing::StartsWith("{\"event\":"));
  }
  EXPECT_EQ(count, 4);
}

TEST_F(CommandTest, TheSameIdWithAnotherSpecShowsTheDifference) {
  ASSERT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  client_.job.mutable_spec()->mutable_training()->set_steps(61);
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("differs in\n  training.steps: 61 -> 60\nto run"));
}

// Symptom: of a job whose bucket did not answer `describe` told nothing at all.
TEST_F(CommandTest, AJobIsDescribedWithoutAStoreThatDoesNotAnswer) {
  client_.usage_answer = absl::DeadlineExceededError("coordinator a:1: Deadline Exceeded");
  client_.job.set_id("mine");
  client_.job.set_state(v1::JOB_STATE_SUCCEEDED);
  client_.job.set_last_checkpoint_step(60);
  EXPECT_EQ(RunDescribe("mine", context_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Checkpoint:     not known: the store does not tell: no answer "
                                    "in time (coordinator a:1: Deadline Exceeded)\n"));
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("On disk")));
  client_.usage_answer = absl::UnavailableError("coordinator a:1: Connection refused");
  EXPECT_NE(RunDescribe("mine", context_), 0);
}

TEST_F(CommandTest, TheSameSpecOnOtherObjectsIsToldInTheCoordinatorsWords) {
  ASSERT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  client_.submit_refused = absl::AlreadyExistsError("job mine exists, and s3://a/b has changed");
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("job mine exists, and s3://a/b has changed"));
  EXPECT_THAT(notes_.str(), testing::Not(HasSubstr("differs in")));
}

// Seen: 2,600 lines of a job that had ended days ago, as if it trained once more.
TEST_F(CommandTest, ARerunOfAFinishedJobShowsItsResultAndNotItsHistory) {
  ASSERT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  out_.str("");
  client_.job.set_state(v1::JOB_STATE_SUCCEEDED);
  client_.job.set_step(60);
  client_.job.set_loss(2.5);
  client_.job.set_weights_folder("/state/exports/mine");
  client_.job.set_weights_digest("sha256:abc");
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine"}, context_), 0);
  EXPECT_EQ(out_.str(),
            "job mine SUCCEEDED at step 60, loss 2.5000\nweights /state/exports/mine\n"
            "digest  sha256:abc\n");
  EXPECT_THAT(notes_.str(), HasSubstr("nothing was run"));
  EXPECT_THAT(notes_.str(), HasSubstr("to train on:  stagecoach resume mine --steps N"));
  EXPECT_THAT(client_.watched_from, testing::IsEmpty());
}

// Seen: a job that had failed before its first checkpoint was told to train on, which `resume`
// refuses.
TEST_F(CommandTest, ARerunOfAFailedJobIsToldToGoOnOnlyWhereThereIsACheckpoint) {
  ASSERT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  client_.job.set_state(v1::JOB_STATE_FAILED);
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine"}, context_), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("to run it anew: choose another --id"));
  EXPECT_THAT(notes_.str(), testing::Not(HasSubstr("stagecoach resume")));
  client_.job.set_last_checkpoint_step(20);
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine"}, context_), 1);
  EXPECT_THAT(notes_.str(),
              HasSubstr("to go on from its checkpoint of step 20:  stagecoach resume mine"));
}

TEST_F(CommandTest, ARerunOfAFinishedJobIsOneEventForPrograms) {
  ASSERT_EQ(RunSubmit({.file = spec_file_, .id = "mine", .detach = true}, context_), 0);
  out_.str("");
  client_.job.set_state(v1::JOB_STATE_FAILED);
  client_.job.set_message("out of memory");
  context_.output = OutputFormat::kNdjson;
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine"}, context_), 1);
  EXPECT_THAT(out_.str(), testing::MatchesRegex("\\{\"event\":\"finished\"[^\n]*\n"));
}

// Seen: a job without stages stood there without a word; `describe` alone knew why.
TEST_F(CommandTest, AJobThatWaitsSaysWhyAndWhenThatChanges) {
  const auto waits = [this](uint64_t number, const char* why) {
    v1::WatchJobResponse record;
    record.set_number(number);
    record.mutable_state()->set_state(v1::JOB_STATE_PENDING);
    record.mutable_state()->set_detail("submitted");
    record.mutable_state()->set_message(why);
    return record;
  };
  client_.records.back().set_number(4);
  client_.records = {waits(1, "accepted"), waits(2, "waits for 2 stages, 0 are ready, 0 are alive"),
                     waits(3, "waits for 2 stages, 1 is ready, 1 is alive"),
                     client_.records.back()};
  for (const OutputFormat format : {OutputFormat::kTable, OutputFormat::kNdjson}) {
    notes_.str("");
    context_.output = format;
    EXPECT_EQ(RunWatch("gpt-1", context_), 0);
    EXPECT_THAT(notes_.str(), HasSubstr("waits for 2 stages, 0 are ready, 0 are alive\n"));
    EXPECT_THAT(notes_.str(), HasSubstr("waits for 2 stages, 1 is ready, 1 is alive\n"));
  }
}

class LoadingViewTest : public CommandTest {
 protected:
  // Shows that a load is at this and that, two seconds apart, and then that the job runs.
  void Show(OutputFormat format, bool terminal, int count) {
    Console console(out_, notes_, {.notes_are_terminal = terminal});
    FollowView view(client_.job, format, &console, &clock_, [] { return std::nullopt; });
    v1::WatchJobResponse loading;
    loading.mutable_state()->set_detail("loading");
    for (int i = 0; i < count; ++i) {
      loading.mutable_state()->set_message(absl::StrCat("a: encodes x: ", i, " %"));
      view.OnLoading(loading);
      clock_.AdvanceNanos(2'000'000'000);
    }
    v1::WatchJobResponse running;
    running.set_number(1);
    running.mutable_state()->set_detail("running");
    view.OnRecord(running);
  }
  ManualClock clock_;
};

TEST_F(LoadingViewTest, ATerminalHasABarThatGoesWithTheLoad) {
  Show(OutputFormat::kTable, true, 2);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(notes_.str(),
            "\r\x1b[K[>                       ] a: encodes x: 0 %"
            "\r\x1b[K[>                       ] a: encodes x: 1 %"
            "\r\x1b[Kjob is running\n");
}

TEST_F(LoadingViewTest, ALogHasALineEveryTenSeconds) {
  Show(OutputFormat::kTable, false, 11);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(notes_.str(),
            "job is loading: a: encodes x: 0 %\njob is loading: a: encodes x: 5 %\n"
            "job is loading: a: encodes x: 10 %\njob is running\n");
}

TEST_F(LoadingViewTest, ProgramsHaveAnEvent) {
  Show(OutputFormat::kNdjson, false, 2);
  EXPECT_EQ(out_.str(),
            "{\"event\":\"loading\",\"step\":0,\"message\":\"a: encodes x: 0 %\",\"percent\":0}\n"
            "{\"event\":\"loading\",\"step\":0,\"message\":\"a: encodes x: 1 %\",\"percent\":1}\n");
  EXPECT_EQ(notes_.str(), "job is running\n");
}

// It has the number of the record before, and is none: reading goes on behind that one.
TEST_F(FollowTest, WhatALoadIsAtIsNoRecord) {
  v1::WatchJobResponse loading;
  loading.set_number(1);
  loading.mutable_state()->set_message("encodes x: 41 %");
  client_.records.insert(client_.records.begin() + 1, loading);
  client_.watches = {{2, absl::UnavailableError("socket closed")}};
  ASSERT_TRUE(Follow().ok());
  EXPECT_THAT(sink_.numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(sink_.loading, ElementsAre("encodes x: 41 %"));
  EXPECT_THAT(client_.watched_from, ElementsAre(0, 1));
}

TEST_F(CommandTest, CtrlCLeavesTheJobAndSaysHowToEndIt) {
  client_.on_submit = [this] { stop_.Request(absl::CancelledError("interrupted")); };
  client_.watches = {{1, absl::CancelledError("client")}};
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine"}, context_), 130);
  EXPECT_THAT(notes_.str(), HasSubstr("stagecoach cancel mine"));
}

TEST_F(CommandTest, CtrlCDuringAnUploadSaysThatItGoesOn) {
  client_.store.on_append = [this] { stop_.Request(absl::CancelledError("interrupted")); };
  EXPECT_EQ(RunSubmit({.file = spec_file_, .id = "mine"}, context_), 130);
  EXPECT_THAT(notes_.str(), HasSubstr("what was uploaded stays"));
  EXPECT_EQ(client_.submits, 0);
}

TEST_F(CommandTest, ExitCodesTellWhatWentWrong) {
  EXPECT_EQ(RunDescribe("nobody", context_), 3);
  client_.reachable = absl::UnavailableError("coordinator localhost:8001: refused");
  EXPECT_EQ(RunList(context_), 4);
  EXPECT_EQ(RunValidate({.file = "/no/such/file.yaml"}, context_), 2);
  EXPECT_EQ(RunValidate({.file = spec_file_}, context_), 0);
}

TEST_F(CommandTest, PlansWithoutAServer) {
  EXPECT_EQ(RunPlan({.file = spec_file_, .stages = 3, .show_schedule = true}, context_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("ideal with equal cells and free links"));
  EXPECT_THAT(out_.str(), HasSubstr("stage 2: "));
  EXPECT_EQ(client_.submits, 0);
  EXPECT_EQ(RunPlan({.file = spec_file_, .stages = 99}, context_), 2);
}

TEST_F(CommandTest, PlansForTheDevicesThatAreNamed) {
  context_.output = OutputFormat::kJson;
  const auto plan = [this](std::vector<std::string> devices) {
    out_.str("");
    EXPECT_EQ(RunPlan({.file = spec_file_, .stages = 2, .devices = std::move(devices)}, context_),
              0);
    return out_.str();
  };
  EXPECT_EQ(plan({"cpu"}), plan({"cpu", "simulated"}));
  EXPECT_NE(plan({"cpu"}), plan({"cpu", "cuda:0"}));
  EXPECT_EQ(plan({"cuda"}), plan({"cuda:0", "cuda:1"}));
  // Symptom: a rate was taken without a word, and the plan was that of another one.
  EXPECT_NE(plan({"simulated"}), plan({"simulated:20"}));
  EXPECT_EQ(plan({"simulated:20"}), plan({"simulated:30", "simulated:20:5"}));
  EXPECT_EQ(plan({"cpu"}), plan({"cpu", "simulated:20"}));
}

TEST(MakeJobId, IsAValidIdForEveryName) {
  const std::string id = MakeJobId(std::string(63, 'a'));
  EXPECT_EQ(id.size(), 63u);
  EXPECT_NE(MakeJobId("gpt"), MakeJobId("gpt"));
  EXPECT_THAT(MakeJobId("gpt"), testing::MatchesRegex("gpt-[0-9a-f]{8}"));
}

}  // namespace
}  // namespace stagecoach
