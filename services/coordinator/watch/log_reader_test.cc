#include "services/coordinator/watch/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/testing/manual_clock.h"
#include "services/coordinator/testing/fake_stage_observer.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogReaderTest : public ::testing::Test {
 protected:
  void Own(double seconds, const std::string& text, const std::string& job = "") {
    LogEntry entry;
    entry.unix_seconds = seconds;
    entry.message = text;
    entry.job_id = job;
    ring_.Append(std::move(entry));
  }
  void Line(const std::string& address, double seconds, const std::string& text) {
    std::vector<v1::LogLine>& lines = stages_.stages[address].lines;
    v1::LogLine& line = lines.emplace_back();
    line.set_number(lines.size());
    line.set_unix_seconds(seconds);
    line.set_message(text);
  }
  v1::ReadLogsResponse Poll(LogReader& reader, uint32_t tail = 0, bool own = true,
                            double ended = 0) {
    std::optional<v1::ReadLogsResponse> answer;
    reader.Poll({.targets = {{0, {"stage-a", "a:1"}}, {1, {"stage-b", "b:1"}}},
                 .own = own,
                 .tail = tail,
                 .ended_unix_seconds = ended},
                [&](v1::ReadLogsResponse response) {
                  EXPECT_FALSE(answer.has_value()) << "answered twice";
                  answer = std::move(response);
                });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(v1::ReadLogsResponse());
  }
  static std::vector<std::string> Texts(const v1::ReadLogsResponse& response) {
    std::vector<std::string> texts;
    for (const v1::LogLine& line : response.lines()) {
      texts.push_back(absl::StrCat(line.source(), " ", line.message()));
    }
    return texts;
  }
  std::shared_ptr<LogReader> Reader(const std::string& job = "") {
    return std::make_shared<LogReader>(&ring_, &stages_, job);
  }

  ManualClock clock_;
  LogRing ring_{100};
  FakeStageObserver stages_{&clock_};
};

TEST_F(LogReaderTest, MergesByTimeAndNamesTheSource) {
  Own(1, "one");
  Own(4, "four");
  Line("a:1", 2, "two");
  Line("b:1", 3, "three");
  EXPECT_THAT(Texts(Poll(*Reader())),
              ElementsAre("coordinator one", "stage-a two", "stage-b three", "coordinator four"));
  EXPECT_THAT(Texts(Poll(*Reader(), 2)), ElementsAre("stage-b three", "coordinator four"));
  EXPECT_THAT(Texts(Poll(*Reader(), 0, false)), ElementsAre("stage-a two", "stage-b three"));
}

TEST_F(LogReaderTest, FollowsFromWhereItWas) {
  const auto reader = Reader();
  Own(1, "one");
  Line("a:1", 2, "two");
  EXPECT_EQ(Poll(*reader).lines_size(), 2);
  EXPECT_EQ(Poll(*reader).lines_size(), 0);
  Line("a:1", 3, "three");
  Own(2.5, "late");
  EXPECT_THAT(Texts(Poll(*reader)), ElementsAre("coordinator late", "stage-a three"));
  EXPECT_THAT(stages_.stages["a:1"].asked_after, ElementsAre(0, 1, 1));
}

TEST_F(LogReaderTest, ReadsANewProcessFromItsFirstLine) {
  const auto reader = Reader();
  for (int i = 0; i < 5; ++i) Line("a:1", i, "old");
  EXPECT_EQ(Poll(*reader).lines_size(), 5);
  stages_.stages["a:1"].lines.clear();
  Line("a:1", 10, "new");
  EXPECT_EQ(Poll(*reader).lines_size(), 0) << "notices only that numbers fell back";
  EXPECT_THAT(Texts(Poll(*reader)), ElementsAre("stage-a new"));
}

TEST_F(LogReaderTest, SaysOnceWhoDoesNotAnswerAndGivesTheOthers) {
  const auto reader = Reader();
  Line("b:1", 1, "here");
  stages_.stages["a:1"].error = absl::UnavailableError("gone");
  const v1::ReadLogsResponse first = Poll(*reader);
  EXPECT_THAT(first.unreachable(), ElementsAre("stage-a cannot be reached"));
  EXPECT_EQ(first.lines_size(), 1);
  EXPECT_THAT(Poll(*reader).unreachable(), IsEmpty());
  stages_.stages["a:1"].error = absl::OkStatus();
  Line("a:1", 2, "back");
  EXPECT_THAT(Texts(Poll(*reader)), ElementsAre("stage-a back"));
  stages_.stages["a:1"].error = absl::DeadlineExceededError("slow");
  EXPECT_THAT(Poll(*reader).unreachable(), ElementsAre("stage-a did not answer in time"));
}

// Symptom: the log of a job that had ended grew by the lines of later jobs. Cause: lines of no job
// (a stage that loads, loses or registers) were in every job's log, whenever they came.
TEST_F(LogReaderTest, AJobsLogEndsWithTheJob) {
  Own(1, "mine", "job-a");
  Line("a:1", 2, "a cell is loaded");
  Own(3, "mine is done", "job-a");
  Line("a:1", 3.5, "its memory is given back");
  Line("b:1", 10, "a later job's cell is loaded");
  Own(11, "a stage registers");
  Own(12, "asked for again", "job-a");
  const auto texts = [&](uint32_t tail) { return Texts(Poll(*Reader("job-a"), tail, true, 3)); };
  EXPECT_THAT(texts(0), ElementsAre("coordinator mine", "stage-a a cell is loaded",
                                    "coordinator mine is done", "stage-a its memory is given back",
                                    "coordinator asked for again"));
  EXPECT_THAT(texts(2),
              ElementsAre("stage-a its memory is given back", "coordinator asked for again"))
      << "what came too late takes no place in the tail";
}

// Symptom: the log of a job that had ended was empty after a while. Cause: the newest lines of a
// source were asked for, and what its process wrote for no job since then were as many.
TEST_F(LogReaderTest, WhatCameAfterTheJobTakesNoneOfItsPlaces) {
  LogRing ring(LogReader::kMostLines + 100);
  LogEntry entry{.unix_seconds = 1, .message = "mine", .job_id = "job-a"};
  ring.Append(entry);
  entry = {.unix_seconds = 100, .message = "a stage registers"};
  for (uint32_t i = 0; i < LogReader::kMostLines + 10; ++i) ring.Append(entry);
  const auto reader = std::make_shared<LogReader>(&ring, &stages_, "job-a");
  EXPECT_THAT(Texts(Poll(*reader, 0, true, 3)), ElementsAre("coordinator mine"));
  EXPECT_EQ(stages_.stages["a:1"].none_until_unix_seconds, 3 + LogReader::kAfterEndSeconds)
      << "and so are the stages asked";
}

TEST_F(LogReaderTest, KeepsToTheJobAndToItsBounds) {
  Own(1, "mine", "job-a");
  Own(2, "another's", "job-b");
  Own(3, "nobody's");
  EXPECT_THAT(Texts(Poll(*Reader("job-a"))),
              ElementsAre("coordinator mine", "coordinator nobody's"));
  for (uint32_t i = 0; i < LogReader::kMostLines + 10; ++i) Line("a:1", 10 + i, "x");
  EXPECT_EQ(Poll(*Reader(), 0).lines_size(), static_cast<int>(LogReader::kMostLines));
}

}  // namespace
}  // namespace stagecoach
