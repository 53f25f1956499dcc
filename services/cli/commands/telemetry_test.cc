// `trace` and `logs` against a fake coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/log_text.h"
#include "services/cli/testing/fake_job_client.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class TelemetryTest : public testing::Test {
 protected:
  TelemetryTest() {
    fake_.job.set_id("gpt-1");
    context_.console = &console_;
    context_.stop = &stop_;
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&fake_);
    };
  }

  void AddStage(int number, const std::string& error) {
    v1::StageTrace* stage = fake_.trace.add_stages();
    stage->set_stage(number);
    stage->set_name("stage-" + std::to_string(number));
    stage->set_error(error);
    if (!error.empty()) return;
    v1::TraceSpan* span = stage->add_spans();
    span->set_name("forward");
    span->set_track(v1::TRACE_TRACK_COMPUTE);
    span->set_step(7);
  }

  static v1::LogLine Line(uint64_t number, double seconds, const std::string& message) {
    v1::LogLine line;
    line.set_number(number);
    line.set_unix_seconds(seconds);
    line.set_level("info");
    line.set_source("stage-0");
    line.set_job_id("gpt-1");
    line.set_message(message);
    return line;
  }

  // Older than what --tail gave.
  static v1::LogLine OtherStage(double seconds) {
    v1::LogLine line = Line(500, seconds, "old");
    line.set_source("stage-1");
    return line;
  }

  // Lines of one answer.
  static v1::ReadLogsResponse Lines(const std::vector<v1::LogLine>& lines) {
    v1::ReadLogsResponse response;
    for (const v1::LogLine& line : lines) *response.add_lines() = line;
    return response;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.File("trace.json");
  FakeJobClient fake_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
};

TEST_F(TelemetryTest, ATraceIsAFile) {
  AddStage(0, "");
  EXPECT_EQ(RunTrace({.job = "gpt-1", .steps = 3, .file = file_}, context_), kExitSuccess);
  EXPECT_EQ(nlohmann::json::parse(FileText(file_)).at("otherData").at("job"), "gpt-1");
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(notes_.str(), HasSubstr(file_));
  EXPECT_EQ(fake_.traced_steps, std::vector<uint32_t>{3});
}

TEST_F(TelemetryTest, ATraceOnStandardOutputIsNothingButTheTrace) {
  AddStage(0, "");
  AddStage(1, "no answer within 2 s");
  EXPECT_EQ(RunTrace({.job = "gpt-1", .file = "-"}, context_), kExitSuccess);
  EXPECT_TRUE(nlohmann::json::accept(out_.str()));
  EXPECT_THAT(notes_.str(), HasSubstr("stage 1 (stage-1): no answer within 2 s"));
}

TEST_F(TelemetryTest, AProgramIsToldWhichFileTheTraceIsIn) {
  AddStage(0, "");
  AddStage(1, "no answer within 2 s");
  context_.output = OutputFormat::kJson;
  EXPECT_EQ(RunTrace({.job = "gpt-1", .file = file_}, context_), kExitSuccess);
  const nlohmann::json told = nlohmann::json::parse(out_.str());
  EXPECT_EQ(told, (nlohmann::json{{"job", "gpt-1"},
                                  {"file", file_},
                                  {"steps", 1},
                                  {"stages", 2},
                                  {"missing", {"stage-1"}}}));
  out_.str("");
  EXPECT_EQ(RunTrace({.job = "gpt-1", .file = "-"}, context_), kExitSuccess);
  EXPECT_TRUE(nlohmann::json::parse(out_.str()).contains("traceEvents")) << "only the trace";
}

TEST_F(TelemetryTest, NoTraceLeavesNoFile) {
  EXPECT_EQ(RunTrace({.job = "nobody", .file = file_}, context_), kExitNotFound);
  EXPECT_EQ(RunTrace({.job = "gpt-1", .file = file_}, context_), kExitFailed) << "no span";
  AddStage(0, "gone");
  EXPECT_EQ(RunTrace({.job = "gpt-1", .file = file_}, context_), kExitUnavailable);
  EXPECT_THAT(notes_.str(), HasSubstr("gone"));
  fake_.reachable = absl::UnavailableError("coordinator");
  EXPECT_EQ(RunTrace({.job = "gpt-1", .file = file_}, context_), kExitUnavailable);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(TelemetryTest, AFileThatCannotBeWrittenIsNamed) {
  AddStage(0, "");
  EXPECT_EQ(RunTrace({.job = "gpt-1", .file = "/nowhere/at/all.json"}, context_), kExitFailed);
  EXPECT_THAT(notes_.str(), HasSubstr("--file /nowhere/at/all.json"));
}

TEST_F(TelemetryTest, LogsAreAskedForAsTheUserSays) {
  EXPECT_EQ(RunLogs({.job = "gpt-1"}, context_), kExitSuccess);
  EXPECT_EQ(RunLogs({.job = "gpt-1", .stage = 0, .tail = 20}, context_), kExitSuccess);
  ASSERT_EQ(fake_.log_requests.size(), 2u);
  EXPECT_FALSE(fake_.log_requests[0].has_stage());
  EXPECT_FALSE(fake_.log_requests[0].follow());
  EXPECT_TRUE(fake_.log_requests[1].has_stage()) << "stage 0 is a stage";
  EXPECT_EQ(fake_.log_requests[1].tail(), 20u);
}

// Symptom: `logs "$JOB"` of an unset variable printed the lines of all jobs.
TEST_F(TelemetryTest, LogsOfNoIdAreRefused) {
  EXPECT_EQ(RunLogs({.job = ""}, context_), kExitNotFound);
  EXPECT_TRUE(fake_.log_requests.empty());
}

TEST_F(TelemetryTest, LogsAsTextAndAsJson) {
  fake_.log_plans.assign(2, {{Lines({Line(1, 100.5, "one"), Line(2, 101, "two")})}, {}});
  EXPECT_EQ(RunLogs({.job = "gpt-1"}, context_), kExitSuccess);
  EXPECT_THAT(out_.str(), HasSubstr(".500 stage-0 info one\n"));
  out_.str("");
  EXPECT_EQ(RunLogs({.job = "gpt-1", .json = true}, context_), kExitSuccess);
  std::istringstream lines(out_.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(nlohmann::json::parse(line).at("message"), "one");
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(nlohmann::json::parse(line).at("number"), "2");
}

TEST_F(TelemetryTest, FollowingGoesOnAfterABrokenStreamWithoutRepeats) {
  fake_.log_plans.push_back(
      {{Lines({Line(7, 100, "seven"), Line(8, 101, "eight")})}, absl::UnavailableError("reset")});
  fake_.log_plans.push_back({{Lines({OtherStage(99), Line(7, 100, "seven"), Line(8, 101, "eight"),
                                     Line(9, 102, "nine"), Line(1, 103, "restarted")})},
                             absl::OkStatus()});
  EXPECT_EQ(RunLogs({.job = "gpt-1", .follow = true, .tail = 2, .json = true, .retry_seconds = 0},
                    context_),
            kExitSuccess);
  std::vector<std::string> messages;
  std::istringstream lines(out_.str());
  for (std::string line; std::getline(lines, line);) {
    messages.push_back(nlohmann::json::parse(line).at("message"));
  }
  EXPECT_THAT(messages, ElementsAre("seven", "eight", "nine", "restarted"));
  ASSERT_EQ(fake_.log_requests.size(), 2u);
  EXPECT_EQ(fake_.log_requests[1].tail(), 0u);
}

TEST_F(TelemetryTest, LogsOfNobodyAndMissingServers) {
  EXPECT_EQ(RunLogs({.job = "nobody"}, context_), kExitNotFound);
  EXPECT_EQ(RunLogs({.job = "nobody", .follow = true}, context_), kExitNotFound);
  v1::ReadLogsResponse response = Lines({Line(1, 100, "one")});
  response.add_unreachable("stage-1: no answer within 2 s");
  fake_.log_plans.push_back({{response, response}, absl::OkStatus()});
  notes_.str("");
  EXPECT_EQ(RunLogs({.job = "gpt-1"}, context_), kExitSuccess);
  EXPECT_EQ(notes_.str(), "stagecoach: missing in the logs: stage-1: no answer within 2 s\n");
}

TEST_F(TelemetryTest, AnInterruptedFollowIsNoFailureOfTheCoordinator) {
  stop_.Request(absl::CancelledError("interrupted"));
  fake_.log_plans.push_back({{}, absl::CancelledError("by the client")});
  EXPECT_EQ(RunLogs({.job = "gpt-1", .follow = true}, context_), kExitInterrupted);
}

TEST_F(TelemetryTest, ALogLineCannotPlayWithTheTerminal) {
  v1::LogLine line = Line(1, 100, "a\x1b[2Jb\nc");
  line.set_step(3);
  EXPECT_THAT(LogText(line, "gpt-1"), EndsWith(" info step=3 a\\x1b[2Jb\\x0ac\n"));
  EXPECT_THAT(LogText(line, "other"), HasSubstr(" job=gpt-1 "));
}

}  // namespace
}  // namespace stagecoach
