// `records --to`: a job's history comes to this machine whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/testing/fake_job_client.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RecordsCommandTest : public testing::Test {
 protected:
  RecordsCommandTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&fake_);
    };
    fake_.job.set_id("job");
    fake_.record_files.set_grant("r.secret");
    v1::ExportedFile& file = *fake_.record_files.add_files();
    file.set_name("metrics.jsonl");
    file.set_bytes(3);
    fake_.fetch_records = [this](const v1::GetRecordFilesResponse& of, const std::string& folder,
                                 const OnFetched& on_fetched) {
      EXPECT_EQ(of.grant(), "r.secret");
      std::ofstream(folder + "/metrics.jsonl") << "{}\n";
      on_fetched(3, 3);
      return fetched_;
    };
  }
  int Run(const std::string& job = "job") {
    return RunRecords({.job = job, .to = folder_.File("here")}, context_);
  }

  const TemporaryFolder folder_;
  absl::Status fetched_;
  FakeJobClient fake_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
};

TEST_F(RecordsCommandTest, FetchesIntoANewFolder) {
  EXPECT_EQ(Run(), kExitSuccess);
  EXPECT_EQ(out_.str(), folder_.File("here") + "\n");
  EXPECT_THAT(notes_.str(), HasSubstr("tensorboard --logdir " + folder_.File("here")));
  EXPECT_EQ(FileText(folder_.File("here/metrics.jsonl")), "{}\n");
}

TEST_F(RecordsCommandTest, TellsProgramsTheFilesWithoutTheSecret) {
  context_.output = OutputFormat::kNdjson;
  EXPECT_EQ(Run(), kExitSuccess);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("metrics.jsonl"), Not(HasSubstr("secret"))));
}

TEST_F(RecordsCommandTest, ABrokenTransferLeavesNothing) {
  fetched_ = absl::UnavailableError("coordinator a:1: at byte 3 nothing has moved");
  EXPECT_NE(Run(), kExitSuccess);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(RecordsCommandTest, SaysThatThereIsNothingYet) {
  fake_.record_files.clear_files();
  EXPECT_NE(Run(), kExitSuccess);
  EXPECT_THAT(notes_.str(), HasSubstr("job job: has no records yet"));
  EXPECT_NE(Run("nobody"), kExitSuccess);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace stagecoach
