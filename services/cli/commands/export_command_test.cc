// `export --to`: the weights come to this machine whole or not at all.
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

using testing::HasSubstr;

class ExportCommandTest : public testing::Test {
 protected:
  ExportCommandTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&fake_);
    };
    fake_.exported.set_folder("/coordinators/exports/job.step-4");
    fake_.exported.set_weights_digest("sha256:1234");
    fake_.fetch = [this](const v1::ExportWeightsResponse& of, const std::string& folder,
                         const OnFetched& on_fetched) {
      EXPECT_EQ(of.weights_digest(), "sha256:1234");
      std::ofstream(folder + "/model.safetensors") << "weights";
      on_fetched(7, 7);
      return fetched_;
    };
  }
  int Run() { return RunExport({.job = "job", .to = folder_.File("here")}, context_); }

  const TemporaryFolder folder_;
  absl::Status fetched_;
  FakeJobClient fake_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
};

TEST_F(ExportCommandTest, FetchesIntoANewFolder) {
  EXPECT_EQ(Run(), kExitSuccess);
  EXPECT_EQ(out_.str(), folder_.File("here") + "\n");
  EXPECT_THAT(notes_.str(), HasSubstr("digest sha256:1234"));
  EXPECT_EQ(FileText(folder_.File("here/model.safetensors")), "weights");
}

TEST_F(ExportCommandTest, LeavesAFolderThatIsThere) {
  folder_.Write("here/mine", "mine");
  EXPECT_NE(Run(), kExitSuccess);
  EXPECT_THAT(notes_.str(), HasSubstr(folder_.File("here")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("here/model.safetensors")));
}

TEST_F(ExportCommandTest, ABrokenTransferLeavesNothing) {
  fetched_ = absl::UnavailableError("coordinator a:1: at byte 7 nothing has moved");
  EXPECT_NE(Run(), kExitSuccess);
  EXPECT_THAT(notes_.str(), HasSubstr("nothing has moved"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  fetched_ = absl::OkStatus();
  EXPECT_EQ(Run(), kExitSuccess);
}

}  // namespace
}  // namespace stagecoach
