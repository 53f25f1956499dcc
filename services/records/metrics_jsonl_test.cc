// The lines are read by programs: checked to the byte. What a crash leaves is cut off.
#include "services/records/metrics_jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

JobRecord RecordOf(uint64_t number, JobRecord::Kind kind, uint64_t step) {
  JobRecord record;
  record.number = number;
  record.kind = kind;
  record.unix_seconds = 1700000000.5;
  record.step = step;
  record.loss = 2.31;
  return record;
}

JobRecord Step(uint64_t number, uint64_t step) {
  JobRecord record = RecordOf(number, JobRecord::Kind::kStep, step);
  record.learning_rate = 3e-4;
  record.gradient_norm = 0.87;
  record.tokens_per_second = 117029;
  record.step_seconds = 0.14;
  record.bubble = 0.31;
  record.bubble_ideal = 0.25;
  return record;
}

TEST(MetricsLine, AStep) {
  EXPECT_EQ(MetricsLine(Step(9, 7), false, {}),
            R"({"number":9,"unix_seconds":1700000000.5,"event":"step","step":7,"loss":2.31,)"
            R"("learning_rate":0.0003,"gradient_norm":0.87,"tokens_per_second":117029.0,)"
            R"("step_seconds":0.14,"bubble":0.31,"bubble_ideal":0.25})"
            "\n");
  JobRecord skipped = Step(9, 7);
  skipped.loss = std::nan("");
  skipped.skipped = true;
  EXPECT_THAT(MetricsLine(skipped, true, {}), HasSubstr(R"("loss":null)"));
  EXPECT_THAT(MetricsLine(skipped, true, {}), EndsWith(R"("skipped":true,"replayed":true})"
                                                       "\n"));
}

TEST(MetricsLine, AStepWithItsStages) {
  StageAssignment stage;
  stage.stage_name = "stage-0";
  stage.phases[Phase::kForward] = 0.25;
  stage.memory_peak.optimizer = 4096;
  EXPECT_THAT(
      MetricsLine(Step(9, 7), false, {stage}),
      EndsWith(R"(,"stages":[{"name":"stage-0","phases":{"forward":0.25,"recompute":0.0,)"
               R"("backward":0.0,"optimizer":0.0,"send":0.0,"receive_wait":0.0,"bubble":0.0,)"
               R"("data_wait":0.0,"checkpoint":0.0,"idle":0.0},"memory_peak":{"parameters":0,)"
               R"("gradients":0,"optimizer":4096,"activations":0}}]})"
               "\n"));
}

TEST(MetricsLine, OtherRecords) {
  const auto rest = [](const JobRecord& record) {
    const std::string line = MetricsLine(record, false, {});
    return line.substr(line.find("\"event\""));
  };
  EXPECT_EQ(rest(RecordOf(1, JobRecord::Kind::kEvaluation, 50)),
            "\"event\":\"evaluation\",\"step\":50,\"loss\":2.31}\n");
  JobRecord scored = RecordOf(1, JobRecord::Kind::kEvaluation, 50);
  scored.measures = {{"average_bleu", 33.5}, {"average_chrf2", 58.25}};
  EXPECT_EQ(rest(scored),
            "\"event\":\"evaluation\",\"step\":50,\"loss\":2.31,\"average_bleu\":33.5,"
            "\"average_chrf2\":58.25,\"signatures\":{"
            "\"bleu\":\"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0\","
            "\"chrf2\":\"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0\"}}\n");
  JobRecord record = RecordOf(2, JobRecord::Kind::kCheckpoint, 50);
  EXPECT_EQ(rest(record), "\"event\":\"checkpoint\",\"step\":50}\n");
  record.message = "disk full\xff";
  EXPECT_EQ(rest(record),
            "\"event\":\"checkpoint\",\"step\":50,\"error\":\"disk full\xef\xbf\xbd\"}\n");
  record.kind = JobRecord::Kind::kRecovery;
  EXPECT_THAT(rest(record), HasSubstr("\"recovery\",\"step\":50,\"message\":\"disk"));
  record = RecordOf(3, JobRecord::Kind::kState, 0);
  record.phase = JobPhase::kLoading;
  EXPECT_EQ(rest(record), "\"event\":\"state\",\"step\":0,\"state\":\"loading\"}\n");
  record = RecordOf(4, JobRecord::Kind::kFinished, 60);
  record.phase = JobPhase::kSucceeded;
  record.weights_digest = "sha256:ab";
  EXPECT_EQ(rest(record),
            "\"event\":\"finished\",\"step\":60,\"state\":\"SUCCEEDED\","
            "\"loss\":2.31,\"weights_digest\":\"sha256:ab\"}\n");
}

TEST(MetricsLine, TextsStayOut) {
  JobRecord record = RecordOf(5, JobRecord::Kind::kWritten, 2);
  record.tokens_per_second = 80;
  record.step_seconds = 0.25;
  record.written = {{.line = 3, .text = "a secret", .done = true, .tokens = 7}};
  EXPECT_EQ(MetricsLine(record, false, {}),
            "{\"number\":5,\"unix_seconds\":1700000000.5,\"event\":\"written\",\"step\":2,"
            "\"tokens_per_second\":80.0,\"step_seconds\":0.25}\n");
}

class RepairTest : public testing::Test {
 protected:
  void Put(const std::string& text) { folder_.Write("metrics.jsonl", text); }
  std::string Text() { return FileText(path_); }
  MetricsTail Repair() {
    const absl::StatusOr<MetricsTail> tail = RepairMetrics(path_);
    EXPECT_TRUE(tail.ok()) << tail.status();
    return tail.ok() ? *tail : MetricsTail();
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("metrics.jsonl");
};

TEST_F(RepairTest, NoFileIsAnEmptyOne) {
  EXPECT_EQ(Repair().number, 0u);
  Put("");
  EXPECT_EQ(Repair().number, 0u);
}

TEST_F(RepairTest, TheTailTellsWhereToGoOn) {
  const std::string text = MetricsLine(RecordOf(1, JobRecord::Kind::kState, 0), false, {}) +
                           MetricsLine(Step(2, 1), false, {}) + MetricsLine(Step(3, 2), false, {}) +
                           MetricsLine(RecordOf(4, JobRecord::Kind::kEvaluation, 2), false, {}) +
                           MetricsLine(RecordOf(5, JobRecord::Kind::kRecovery, 1), false, {}) +
                           MetricsLine(Step(6, 1), true, {}) +
                           MetricsLine(RecordOf(7, JobRecord::Kind::kWritten, 9), false, {});
  Put(text);
  const MetricsTail tail = Repair();
  EXPECT_EQ(tail.number, 7u);
  EXPECT_EQ(tail.furthest_step, 2u);
  EXPECT_EQ(tail.furthest_evaluation, 2u);
  EXPECT_FALSE(tail.finished);
  EXPECT_EQ(Text(), text);
}

TEST_F(RepairTest, TheEndIsSeen) {
  Put(MetricsLine(RecordOf(1, JobRecord::Kind::kFinished, 3), false, {}));
  EXPECT_TRUE(Repair().finished);
}

TEST_F(RepairTest, ACutOfTheLastLineIsRepaired) {
  const std::string whole = MetricsLine(Step(1, 1), false, {});
  const std::string last = MetricsLine(Step(2, 2), false, {});
  for (size_t size = 0; size < last.size(); size += 9) {
    Put(whole + last.substr(0, size));
    EXPECT_EQ(Repair().number, 1u) << size;
    EXPECT_EQ(Text(), whole) << size;
  }
}

TEST_F(RepairTest, WhatAPowerCutLeftGoesWithAllBehindIt) {
  const std::string whole = MetricsLine(Step(1, 1), false, {});
  Put(whole + std::string(100, '\0') + "\n" + MetricsLine(Step(3, 3), false, {}));
  EXPECT_EQ(Repair().number, 1u);
  EXPECT_EQ(Text(), whole);
}

}  // namespace
}  // namespace stagecoach
