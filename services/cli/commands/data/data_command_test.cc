// `stagecoach data`: what it sends, prints and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/testing/temporary_folder.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/testing/fake_job_client.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;
using testing::Not;

class DataCommandTest : public testing::Test {
 protected:
  DataCommandTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    context_.input = -1;  // no terminal
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&fake_);
    };
    folder_.Write("faces/train/1.jpg", "one");
    folder_.Write("faces/train/.hidden", "x");
    folder_.Write("faces/labels", "22");
  }
  int PutFaces(bool replace = false) {
    return RunPutData({.paths = {folder_.File("faces")}, .name = "faces", .replace = replace},
                      context_);
  }
  std::string Printed() {
    const std::string text = out_.str();
    out_.str("");
    return text;
  }

  const TemporaryFolder folder_;
  FakeJobClient fake_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
};

TEST_F(DataCommandTest, AFolderIsPutListedShownAndRemoved) {
  EXPECT_EQ(PutFaces(), kExitSuccess) << notes_.str();
  EXPECT_EQ(Printed(), "faces\n");
  EXPECT_THAT(notes_.str(), HasSubstr("leaves out 1 name that begins with a dot"));
  EXPECT_EQ(RunListData(context_), kExitSuccess);
  EXPECT_THAT(Printed(), HasSubstr("faces  "));
  EXPECT_EQ(RunShowData("faces", context_), kExitSuccess) << notes_.str();
  const std::string shown = Printed();
  EXPECT_THAT(shown, HasSubstr("train/1.jpg"));
  EXPECT_THAT(shown, HasSubstr("5 B in 2 files"));
  const std::string id = fake_.store.sets.begin()->first;
  context_.output = OutputFormat::kJson;
  EXPECT_EQ(RunShowData(id.substr(0, 8), context_), kExitSuccess) << "the first digits do";
  EXPECT_THAT(Printed(), HasSubstr("\"path\": \"labels\""));
  EXPECT_EQ(RunRemoveData({.data_set = "faces"}, context_), kExitUsage);
  EXPECT_THAT(notes_.str(), HasSubstr("add --yes"));
  fake_.store.in_use.insert(id);
  EXPECT_EQ(RunRemoveData({.data_set = "faces", .yes = true}, context_), kExitFailed);
  fake_.store.in_use.clear();
  EXPECT_EQ(RunRemoveData({.data_set = "faces", .yes = true}, context_), kExitSuccess);
  EXPECT_EQ(RunShowData("faces", context_), kExitNotFound);
}

TEST_F(DataCommandTest, ANameIsGivenAnewOnlyWithReplace) {
  ASSERT_EQ(PutFaces(), kExitSuccess);
  folder_.Write("faces/labels", "3");
  EXPECT_EQ(PutFaces(), kExitFailed);
  EXPECT_THAT(notes_.str(), HasSubstr("--replace"));
  EXPECT_EQ(PutFaces(/*replace=*/true), kExitSuccess);
  EXPECT_EQ(fake_.store.sets.size(), 2u);
}

TEST_F(DataCommandTest, SeveralPathsHaveTheirLastNames) {
  const std::string one = folder_.Write("one.txt", "1");
  EXPECT_EQ(RunPutData({.paths = {one, folder_.File("faces/")}}, context_), kExitSuccess)
      << notes_.str();
  EXPECT_EQ(Printed(), fake_.store.sets.begin()->first + "\n") << "without a name the id";
  EXPECT_EQ(RunShowData(fake_.store.sets.begin()->first, context_), kExitSuccess);
  const std::string shown = Printed();
  EXPECT_THAT(shown, HasSubstr("one.txt"));
  EXPECT_THAT(shown, HasSubstr("faces/train/1.jpg"));
}

TEST_F(DataCommandTest, WhatIsNoDataOrNoNameIsRefused) {
  EXPECT_EQ(RunPutData({.paths = {folder_.MakeFolder("empty")}}, context_), kExitUsage);
  EXPECT_THAT(notes_.str(), HasSubstr("has no file"));
  EXPECT_EQ(RunPutData({.paths = {folder_.File("none")}}, context_), kExitUsage);
  EXPECT_EQ(RunPutData({.paths = {folder_.File("faces")}, .name = "My faces"}, context_),
            kExitUsage);
  EXPECT_THAT(notes_.str(), HasSubstr("--name = My faces"));
  for (const char* const path : {"s3://corpora/a.txt", "S3://corpora/a.txt"}) {
    EXPECT_EQ(RunPutData({.paths = {path}}, context_), kExitUsage);
    EXPECT_THAT(notes_.str(), HasSubstr(std::string(path) + ": is in a bucket"));
  }
  EXPECT_THAT(notes_.str(), HasSubstr("data.text.path: s3://BUCKET/KEY"));
  EXPECT_TRUE(fake_.store.parts.empty());
}

}  // namespace
}  // namespace stagecoach
