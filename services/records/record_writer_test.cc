// The writer against a fake manager: nothing lost or doubled, whatever happens to queue and files.
#include "services/records/record_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using testing::ElementsAre;

constexpr std::chrono::seconds kDeadline(20);

JobRecord Record(uint64_t number, JobRecord::Kind kind, uint64_t step) {
  JobRecord record;
  record.number = number;
  record.kind = kind;
  record.step = step;
  record.unix_seconds = 1700000000;
  record.loss = 1.0 / static_cast<double>(step + 1);
  record.phase = kind == JobRecord::Kind::kFinished ? JobPhase::kSucceeded : JobPhase::kRunning;
  return record;
}

// One job's history and its watches, given out on the caller's thread.
class FakeManager {
 public:
  RecordSource source() {
    return {[this](const std::string& id, uint64_t after, JobManager::Watcher watcher,
                   std::function<void(absl::Status)> ended) {
              {
                std::lock_guard<std::mutex> lock(mutex_);
                watched_from_.push_back(after);
                watched_.push_back(id);
              }
              for (const JobRecord& record : records) {
                if (record.number <= after) continue;
                if (!watcher(record)) return;  // as JobManager: not told that it left
                if (record.kind == JobRecord::Kind::kFinished) {
                  ended(absl::OkStatus());
                  Note(&ended_);
                  return;
                }
              }
              std::lock_guard<std::mutex> lock(mutex_);
              open_.push_back({std::move(watcher), std::move(ended)});
              ++opened_;
              changed_.notify_all();
            },
            [this](const std::string&, std::function<void(absl::StatusOr<JobView>)> done) {
              done(view);
            }};
  }

  void WaitForEnd() { Wait(&ended_); }
  void WaitForOpenWatch() { Wait(&opened_); }
  std::vector<uint64_t> watched_from() {
    std::lock_guard<std::mutex> lock(mutex_);
    return watched_from_;
  }
  std::vector<std::string> watched() {
    std::lock_guard<std::mutex> lock(mutex_);
    return watched_;
  }
  // To every open watch, as from the job loop.
  bool Give(const JobRecord& record) {
    std::lock_guard<std::mutex> lock(mutex_);
    bool all = true;
    for (auto& [watcher, ended] : open_) all = watcher(record) && all;
    return all;
  }
  void EndWatches(const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [watcher, ended] : open_) ended(status);
    open_.clear();
    opened_ = 0;
  }

  std::vector<JobRecord> records;
  absl::StatusOr<JobView> view = absl::UnavailableError("no view");

 private:
  void Note(int* what) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++*what;
    changed_.notify_all();
  }
  void Wait(const int* what) {
    std::unique_lock<std::mutex> lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kDeadline, [what] { return *what > 0; }));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int ended_ = 0, opened_ = 0;
  std::vector<uint64_t> watched_from_;
  std::vector<std::string> watched_;
  std::vector<std::pair<JobManager::Watcher, std::function<void(absl::Status)>>> open_;
};

class RecordWriterTest : public testing::Test {
 protected:
  RecordWriterTest() {
    options_.folder = folder_;
    options_.retry_seconds = 0;
  }
  std::string MetricsFile() const { return folder_ + "/job/metrics.jsonl"; }
  std::vector<json> Lines() const {
    std::ifstream file(MetricsFile());
    std::vector<json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
  }
  std::vector<uint64_t> Numbers() const {
    std::vector<uint64_t> numbers;
    for (const json& line : Lines()) numbers.push_back(line.at("number"));
    return numbers;
  }
  std::vector<std::string> EventFiles() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/job")) {
      const std::string name = entry.path().filename();
      if (absl::StartsWith(name, "events.out.tfevents.")) names.push_back(entry.path());
    }
    return names;
  }
  static bool Soon(const std::function<bool()>& so) {
    const auto until = std::chrono::steady_clock::now() + kDeadline;
    while (!so() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return so();
  }
  void WriteToTheEnd() {
    RecordWriter writer(options_, manager_.source());
    writer.Follow("job");
    manager_.WaitForEnd();
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.File("jobs");  // which the writer makes
  FakeManager manager_;
  RecordWriterOptions options_;
};

TEST_F(RecordWriterTest, EveryRecordIsALineOnceAndTheFilesAreClosedAtTheEnd) {
  manager_.records = {Record(1, JobRecord::Kind::kState, 0), Record(2, JobRecord::Kind::kStep, 1),
                      Record(3, JobRecord::Kind::kStep, 2),
                      Record(4, JobRecord::Kind::kFinished, 2)};
  WriteToTheEnd();
  EXPECT_THAT(Numbers(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(EventFiles().size(), 1u);
}

// The story: state/jobs was made with 0755, beside files of 0600.
TEST_F(RecordWriterTest, NewFoldersAreTheOwnersAlone) {
  manager_.records = {Record(1, JobRecord::Kind::kFinished, 0)};
  WriteToTheEnd();
  for (const std::string& folder : {folder_, folder_ + "/job"}) {
    EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all)
        << folder;
  }
}

// The writer was a moment behind when the coordinator was told to go: the lines of the last steps,
// of a short job of all, did not say how its stages stood, and no later start adds that.
TEST_F(RecordWriterTest, WhatWasSaidIsWrittenWhileTheSourceAnswers) {
  manager_.records = {Record(1, JobRecord::Kind::kState, 0)};
  JobView view;
  view.step = 39;
  view.stages.resize(2);
  manager_.view = view;
  RecordWriter writer(options_, manager_.source());
  writer.Follow("job");
  manager_.WaitForOpenWatch();
  for (uint64_t number = 2; number <= 40; ++number) {
    EXPECT_TRUE(manager_.Give(Record(number, JobRecord::Kind::kStep, number - 1)));
  }
  ASSERT_TRUE(writer.CatchUp(std::chrono::duration<double>(kDeadline).count()));
  manager_.EndWatches(absl::CancelledError("the manager ends"));
  writer.Stop();
  EXPECT_EQ(Numbers().size(), 40u);
  EXPECT_TRUE(Lines().back().contains("stages"));
}

TEST_F(RecordWriterTest, AFullQueueCostsTimeAndNoRecord) {
  options_.queued_records = 3;
  for (uint64_t number = 1; number <= 100; ++number) {
    manager_.records.push_back(Record(number, JobRecord::Kind::kStep, number));
  }
  manager_.records.push_back(Record(101, JobRecord::Kind::kFinished, 100));
  WriteToTheEnd();
  std::vector<uint64_t> expected;
  for (uint64_t number = 1; number <= 101; ++number) expected.push_back(number);
  EXPECT_EQ(Numbers(), expected);
  EXPECT_GT(manager_.watched_from().size(), 30u) << "the watch is opened anew when there is room";
}

TEST_F(RecordWriterTest, ARestartGoesOnBehindTheLastWholeLine) {
  manager_.records = {Record(1, JobRecord::Kind::kStep, 1), Record(2, JobRecord::Kind::kStep, 2)};
  {
    RecordWriter writer(options_, manager_.source());
    writer.Follow("job");
    manager_.WaitForOpenWatch();
  }
  ASSERT_THAT(Numbers(), ElementsAre(1, 2));
  // The crash came in the middle of the second line.
  std::filesystem::resize_file(MetricsFile(), std::filesystem::file_size(MetricsFile()) - 5);
  manager_.records.push_back(Record(3, JobRecord::Kind::kFinished, 2));
  WriteToTheEnd();
  EXPECT_THAT(Numbers(), ElementsAre(1, 2, 3));
  EXPECT_THAT(manager_.watched_from(), ElementsAre(0, 1));
  // A job whose end is in the file is not read again.
  {
    RecordWriter writer(options_, manager_.source());
    writer.Follow("job");
  }
  EXPECT_EQ(Numbers().size(), 3u);
}

// The story: of every job that was purged a watch was opened every five seconds for ever, and its
// folder, which somebody had removed, came back empty.
TEST_F(RecordWriterTest, AJobThatIsNotKnownAnyMoreIsLetGoOf) {
  RecordWriter writer(options_, manager_.source());
  writer.Follow("job");
  manager_.WaitForOpenWatch();
  manager_.EndWatches(absl::NotFoundError("no such job"));
  writer.Follow("other");  // whatever is due is opened with it
  manager_.WaitForOpenWatch();
  EXPECT_THAT(manager_.watched(), ElementsAre("job", "other"));
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "there was nothing to write";
  manager_.Give(Record(1, JobRecord::Kind::kFinished, 0));
  writer.Stop();
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/other/metrics.jsonl"));
}

// Its folder is removed next: a record that is still said must not bring it back.
TEST_F(RecordWriterTest, AJobThatIsLeftIsNotWrittenAnyMore) {
  manager_.records = {Record(1, JobRecord::Kind::kStep, 1)};
  RecordWriter writer(options_, manager_.source());
  writer.Follow("job");
  manager_.WaitForOpenWatch();
  writer.Leave("job");
  std::filesystem::remove_all(folder_ + "/job");
  EXPECT_FALSE(manager_.Give(Record(2, JobRecord::Kind::kStep, 2))) << "its watch is over";
  writer.Leave("nobody");
  writer.Stop();
  writer.Leave("job");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/job"));
}

TEST_F(RecordWriterTest, StepsThatComeAgainAreMarkedAndNotDrawnTwice) {
  manager_.records = {
      Record(1, JobRecord::Kind::kStep, 1),     Record(2, JobRecord::Kind::kStep, 2),
      Record(3, JobRecord::Kind::kRecovery, 1), Record(4, JobRecord::Kind::kStep, 2),
      Record(5, JobRecord::Kind::kStep, 3),     Record(6, JobRecord::Kind::kFinished, 3)};
  WriteToTheEnd();
  std::map<uint64_t, int> firsts;
  for (const json& line : Lines()) {
    if (line.at("event") == "step" && !line.contains("replayed")) ++firsts[line.at("step")];
  }
  EXPECT_EQ(firsts, (std::map<uint64_t, int>{{1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(Lines()[3].at("replayed"), true);
  ASSERT_EQ(EventFiles().size(), 1u);
  const std::string bytes = FileText(EventFiles()[0]);
  int drawn = 0;
  for (size_t at = bytes.find("train/loss"); at != std::string::npos;
       at = bytes.find("train/loss", at + 1)) {
    ++drawn;
  }
  EXPECT_EQ(drawn, 3);
}

TEST_F(RecordWriterTest, TheStagesPartGoesToItsStepOnly) {
  JobView view;
  view.step = 2;
  view.stages.resize(2);
  view.stages[1].phases[Phase::kBubble] = 0.5;
  manager_.view = view;
  manager_.records = {Record(1, JobRecord::Kind::kStep, 1), Record(2, JobRecord::Kind::kStep, 2),
                      Record(3, JobRecord::Kind::kFinished, 2)};
  WriteToTheEnd();
  EXPECT_FALSE(Lines()[0].contains("stages"));
  EXPECT_EQ(Lines()[1].at("stages")[1].at("phases").at("bubble"), 0.5);
  const std::string bytes = FileText(EventFiles().at(0));
  EXPECT_TRUE(absl::StrContains(bytes, "time/stage_1/bubble"));
  EXPECT_TRUE(absl::StrContains(bytes, "memory/stage_0/peak"));
}

TEST_F(RecordWriterTest, AFolderThatCannotBeMadeNowIsMadeLater) {
  temporary_.Write("jobs", "in the way");
  manager_.records = {Record(1, JobRecord::Kind::kFinished, 0)};
  RecordWriter writer(options_, manager_.source());
  writer.Follow("job");
  writer.Follow("job");
  EXPECT_TRUE(Soon([this] { return manager_.watched_from().size() > 1; })) << "read again";
  std::filesystem::remove(folder_);
  EXPECT_TRUE(Soon([this] { return !Numbers().empty(); }));
  writer.Stop();
  EXPECT_THAT(Numbers(), ElementsAre(1));
}

TEST_F(RecordWriterTest, AWatchThatIsRefusedIsOpenedAgain) {
  RecordWriter writer(options_, manager_.source());
  writer.Follow("job");
  manager_.WaitForOpenWatch();
  EXPECT_TRUE(manager_.Give(Record(1, JobRecord::Kind::kStep, 1)));
  manager_.EndWatches(absl::UnavailableError("too many requests"));
  manager_.WaitForOpenWatch();
  EXPECT_TRUE(manager_.Give(Record(2, JobRecord::Kind::kFinished, 1)));
  writer.Stop();
  EXPECT_THAT(Numbers(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace stagecoach
