#include "services/common/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint64_t> Numbers(const LogRing::Page& page) {
  std::vector<uint64_t> numbers;
  for (const LogEntry& entry : page.lines) numbers.push_back(entry.number);
  return numbers;
}

void AppendLine(LogRing& ring, const std::string& job, const std::string& text) {
  LogEntry entry;
  entry.job_id = job;
  entry.message = text;
  ring.Append(std::move(entry));
}

TEST(LogRing, ReadsOnFromWhereTheLastReadEnded) {
  LogRing ring(8);
  EXPECT_EQ(ring.Read(0, "", 0).newest, 0u);
  for (int i = 0; i < 3; ++i) AppendLine(ring, "", "x");
  const LogRing::Page first = ring.Read(0, "", 0);
  EXPECT_THAT(Numbers(first), ElementsAre(1, 2, 3));
  AppendLine(ring, "", "x");
  EXPECT_THAT(Numbers(ring.Read(first.newest, "", 0)), ElementsAre(4));
  EXPECT_TRUE(ring.Read(4, "", 0).lines.empty());
}

TEST(LogRing, ForgetsTheOldestLines) {
  LogRing ring(4);
  for (int i = 1; i <= 10; ++i) AppendLine(ring, "", absl::StrCat("line ", i));
  const LogRing::Page page = ring.Read(0, "", 0);
  EXPECT_THAT(Numbers(page), ElementsAre(7, 8, 9, 10));
  EXPECT_EQ(page.lines.front().message, "line 7");
  EXPECT_EQ(page.newest, 10u);
}

TEST(LogRing, FiltersByJobAndLimitsToTheNewest) {
  LogRing ring(16);
  AppendLine(ring, "a", "");
  AppendLine(ring, "b", "");
  AppendLine(ring, "", "");
  AppendLine(ring, "a", "");
  AppendLine(ring, "b", "");
  EXPECT_THAT(Numbers(ring.Read(0, "a", 0)), ElementsAre(1, 3, 4))
      << "lines of no job belong to all";
  EXPECT_THAT(Numbers(ring.Read(0, "a", 2)), ElementsAre(3, 4));
  EXPECT_EQ(ring.Read(0, "a", 0).newest, 5u) << "the line that was looked at and not wanted counts";
}

TEST(LogRing, HoldsBoundedUtf8) {
  LogRing ring(2);
  AppendLine(ring, "", std::string(3 * kLongestLogLine, 'x'));
  AppendLine(ring, "",
             "path \xff\xfe stra\xc3\x9f"
             "e");
  const LogRing::Page page = ring.Read(0, "", 0);
  EXPECT_EQ(page.lines[0].message.size(), kLongestLogLine);
  EXPECT_EQ(page.lines[1].message,
            "path \\xff\\xfe stra\xc3\x9f"
            "e");
}

TEST(LogRing, CutsNoCharacterInTwoAndHoldsNoCommandsToTerminals) {
  LogRing ring(2);
  AppendLine(ring, "a\nb", std::string(kLongestLogLine - 1, 'x') + "\u20ac");
  AppendLine(ring, "", "\x1b[2J\nnext \u202e \xc2\x9b");
  const LogRing::Page page = ring.Read(0, "", 0);
  EXPECT_EQ(page.lines[0].message, std::string(kLongestLogLine - 1, 'x'));
  EXPECT_EQ(page.lines[0].job_id, "a\\x0ab");
  EXPECT_EQ(page.lines[1].message, "\\x1b[2J\nnext \\xe2\\x80\\xae \\xc2\\x9b");
}

TEST(Log, LinesCarryTheirJobIntoRingAndText) {
  ASSERT_TRUE(SetUpLogging("stage", "text", false).ok());
  const uint64_t before = ProcessLogRing()->Read(0, "", 0).newest;
  testing::internal::CaptureStderr();
  spdlog::info("no job");
  LogJob(spdlog::level::warn, "a", 17, "value {}", 3);
  LogJob(spdlog::level::err, "a", std::nullopt, "lost");
  {
    const LogScope outer("b", 1);
    const LogScope inner("c");
    spdlog::info("inner");
    std::thread([] { spdlog::info("other thread"); }).join();
  }
  spdlog::debug("not wanted");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("I stage: no job\n"));
  EXPECT_THAT(text, HasSubstr("W stage: job a step 17: value 3\n"));
  EXPECT_THAT(text, HasSubstr("E stage: job a: lost\n"));
  EXPECT_THAT(text, HasSubstr("I stage: other thread\n"));
  const std::vector<LogEntry> lines = ProcessLogRing()->Read(before, "", 0).lines;
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[1].message, "value 3");
  EXPECT_EQ(lines[1].level, "warning");
  EXPECT_EQ(lines[1].job_id, "a");
  EXPECT_EQ(lines[1].step, std::optional<uint64_t>(17));
  EXPECT_EQ(lines[2].level, "error");
  EXPECT_FALSE(lines[2].step.has_value());
  EXPECT_EQ(lines[3].job_id, "c") << "the inner scope counts";
  EXPECT_EQ(lines[4].job_id, "") << "a scope is of one thread";
  EXPECT_GT(lines[1].unix_seconds, 1e9);
}

// A stage's error forged lines of the coordinator, and turned the terminal's colours.
TEST(Log, WhatAMessageQuotesForgesNoLine) {
  ASSERT_TRUE(SetUpLogging("coordinator", "text", false).ok());
  testing::internal::CaptureStderr();
  spdlog::warn("stage 1: gone\n2026-01-01T00:00:00.000 I coordinator: job a: succeeded \x1b[31m");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("W coordinator: stage 1: gone\n  | 2026-01-01T00:00:00.000 I "
                              "coordinator: job a: succeeded \\x1b[31m\n"));
}

TEST(Log, JsonLinesParseAndHaveTheFields) {
  ASSERT_TRUE(SetUpLogging("stage", "json", false).ok());
  testing::internal::CaptureStderr();
  LogJob(spdlog::level::info, "quote\"d", 5, "a \"b\"\n\tc");
  spdlog::info("plain");
  const std::vector<std::string> lines =
      absl::StrSplit(testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  const auto first = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(first["job_id"], "quote\"d");
  EXPECT_EQ(first["step"], 5);
  EXPECT_EQ(first["message"], "a \"b\"\n\tc");
  EXPECT_EQ(first["level"], "info");
  const auto second = nlohmann::json::parse(lines[1]);
  EXPECT_FALSE(second.contains("job_id"));
  EXPECT_FALSE(second.contains("step"));
}

// A path that is no UTF-8 made lines that no reader of JSON took, and a job's id came from a
// stage's peer as it was.
TEST(Log, LinesAreTextWhateverTheyQuote) {
  for (const char* format : {"json", "text"}) {
    ASSERT_TRUE(SetUpLogging("stage", format, false).ok());
    testing::internal::CaptureStderr();
    LogJob(spdlog::level::info, "a\nforged \x1b[1m", 5, "\xff \x7f \xc2\x9b \u2066");
    std::string text = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(text.ends_with('\n'));
    text.pop_back();
    EXPECT_EQ(ShownName(text), text) << format << ": one line, and nothing that a terminal obeys";
    if (format == std::string("text")) continue;
    EXPECT_EQ(nlohmann::json::parse(text)["message"], R"(\xff \x7f \xc2\x9b \xe2\x81\xa6)");
  }
}

TEST(Log, ToProtoKeepsEveryField) {
  LogEntry entry{.number = 7, .unix_seconds = 1.5, .level = "info", .message = "m", .job_id = "j"};
  v1::LogLine line = ToProto(entry, "stage-1");
  EXPECT_FALSE(line.has_step());
  entry.step = 0;
  line = ToProto(entry, "stage-1");
  EXPECT_TRUE(line.has_step()) << "step 0 is a step";
  EXPECT_EQ(line.number(), 7u);
  EXPECT_EQ(line.source(), "stage-1");
  EXPECT_EQ(line.job_id(), "j");
  EXPECT_EQ(line.message(), "m");
  EXPECT_EQ(line.level(), "info");
  EXPECT_DOUBLE_EQ(line.unix_seconds(), 1.5);
}

}  // namespace
}  // namespace stagecoach
