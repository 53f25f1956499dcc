// Following a job that writes texts: they are the data, and it trains nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/testing/fake_job_client.h"
#include "services/common/convert/convert_control.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

class WritingJobTest : public testing::Test {
 protected:
  WritingJobTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&client_);
    };
    client_.job.set_id("gpt-1");
    v1::JobSpec& spec = *client_.job.mutable_spec();
    spec.mutable_training()->set_batch_size(1);
    spec.mutable_write()->mutable_lines()->Add("house");
    spec.mutable_write()->mutable_lines()->Add("dog");
    spec.mutable_write()->mutable_translate();
    client_.job.set_total_steps(2);
    client_.job.set_step(2);
    Written(0, 100, {{.line = 0, .text = "Ha"}});
    Written(1, 102, {{.line = 0, .offset = 2, .text = "us", .done = true, .tokens = 2}});
    Written(2, 103, {{.line = 1, .text = "Hund", .done = true, .tokens = 1}});
    v1::WatchJobResponse& last = Record(2, 103);
    last.mutable_finished()->set_state(v1::JOB_STATE_SUCCEEDED);
  }
  v1::WatchJobResponse& Record(uint64_t step, double unix_seconds) {
    v1::WatchJobResponse& record = client_.records.emplace_back();
    record.set_number(client_.records.size());
    record.set_step(step);
    record.set_unix_seconds(unix_seconds);
    return record;
  }
  void Written(uint64_t step, double unix_seconds, const std::vector<WrittenPiece>& pieces) {
    v1::WrittenRecord& written = *Record(step, unix_seconds).mutable_written();
    for (const WrittenPiece& piece : pieces) *written.add_texts() = ToProto(piece);
  }

  FakeJobClient client_;
  StopSignal stop_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  CommandContext context_;
};

TEST_F(WritingJobTest, TheTextsAreTheDataAndTheStepsAreNotes) {
  EXPECT_EQ(RunWatch("gpt-1", context_), 0);
  EXPECT_EQ(out_.str(), "Haus\nHund\n");
  EXPECT_EQ(notes_.str(),
            "step=1/2 lines=1/2 step_s=2.000 mem_peak_gib=0.00 eta=2s\n"
            "step=2/2 lines=2/2 step_s=1.000 mem_peak_gib=0.00 eta=0s\n"
            "job gpt-1 SUCCEEDED at step 2\n");
}

TEST_F(WritingJobTest, AGeneratedTextStandsBehindItsPrompt) {
  client_.job.mutable_spec()->mutable_write()->mutable_generate();
  EXPECT_EQ(RunWatch("gpt-1", context_), 0);
  EXPECT_EQ(out_.str(), "houseHaus\ndogHund\n");
}

TEST_F(WritingJobTest, ProgramsGetThePiecesAndNoLoss) {
  context_.output = OutputFormat::kNdjson;
  EXPECT_EQ(RunWatch("gpt-1", context_), 0);
  EXPECT_EQ(out_.str(),
            "{\"event\":\"written\",\"step\":0,\"texts\":[{\"line\":0,\"offset\":0,"
            "\"text\":\"Ha\"}]}\n"
            "{\"event\":\"written\",\"step\":1,\"texts\":[{\"line\":0,\"offset\":2,"
            "\"text\":\"us\",\"done\":true,\"tokens\":2,\"score\":0,\"ended\":false}]}\n"
            "{\"event\":\"written\",\"step\":2,\"texts\":[{\"line\":1,\"offset\":0,"
            "\"text\":\"Hund\",\"done\":true,\"tokens\":1,\"score\":0,\"ended\":false}]}\n"
            "{\"event\":\"finished\",\"state\":\"SUCCEEDED\",\"step\":2,\"loss\":null,"
            "\"weights_digest\":null}\n");
  context_.output = OutputFormat::kJson;
  out_.str("");
  notes_.str("");
  EXPECT_EQ(RunWatch("gpt-1", context_), 0);
  EXPECT_THAT(out_.str(), testing::StartsWith("{\n \"id\": \"gpt-1\""));
  EXPECT_THAT(notes_.str(), HasSubstr("Haus\n"));
}

// Its texts are its result, and there is nothing to train on.
TEST_F(WritingJobTest, ARerunOfOneThatEndedShowsItsTexts) {
  client_.job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(
      ReportEnded(client_, client_.job, "choose another --id", "stagecoach resume gpt-1", context_),
      0);
  EXPECT_EQ(out_.str(), "Haus\nHund\n");
  EXPECT_THAT(notes_.str(), HasSubstr(" with this spec already: its texts are of that run\n"
                                      "to run it anew: choose another --id\n"));
  EXPECT_THAT(notes_.str(), testing::Not(HasSubstr("resume")));
}

TEST_F(WritingJobTest, WhoWaitsForItsEndGetsNoTexts) {
  EXPECT_EQ(RunWait("gpt-1", context_), 0);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(notes_.str(), "job gpt-1 SUCCEEDED at step 2\n");
}

// Seen: the first lines, and then success.
TEST_F(WritingJobTest, ASuccessWithoutAllTextsIsNone) {
  client_.records.erase(client_.records.begin() + 2);
  for (const OutputFormat format :
       {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kNdjson}) {
    context_.output = format;
    notes_.str("");
    EXPECT_EQ(RunWatch("gpt-1", context_), 1);
    EXPECT_THAT(notes_.str(), HasSubstr("stagecoach: job gpt-1 succeeded, and the coordinator has "
                                        "the texts of the first 1 of 2 lines only\n"));
  }
  client_.records.back().mutable_finished()->set_state(v1::JOB_STATE_CANCELLED);
  notes_.str("");
  EXPECT_EQ(RunWatch("gpt-1", context_), 5) << "and nobody awaits them of a job that ended before";
  EXPECT_THAT(notes_.str(), testing::Not(HasSubstr("lines only")));
}

// The pieces before an interruption are a part of the texts.
TEST_F(WritingJobTest, OneThatGoesOnIsShownFromItsBeginning) {
  EXPECT_EQ(FollowAndReport(client_, client_.job, /*quiet=*/false, context_, /*after=*/2), 0);
  EXPECT_EQ(out_.str(), "Haus\nHund\n");
}

}  // namespace
}  // namespace stagecoach
