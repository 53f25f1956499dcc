// A restart is the same stage; a copy, a neighbour and a second process are not.
#include "services/stage/stage_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

const Machine kHere = {"boot", "network"};

class StageIdentityTest : public ::testing::Test {
 protected:
  static std::unique_ptr<StageIdentity> Make(const std::string& folder, const Machine& machine,
                                             const std::string& listen) {
    auto identity = StageIdentity::Make(folder, machine, listen);
    EXPECT_TRUE(identity.ok()) << identity.status();
    return *std::move(identity);
  }
  static std::string TextOf(const std::string& folder, const Machine& machine,
                            const std::string& listen) {
    return Make(folder, machine, listen)->text();
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.File("state");  // which the identity makes
};

TEST_F(StageIdentityTest, WithoutAFolderTheListeningPlaceIsIt) {
  const std::string text = TextOf("", kHere, "0.0.0.0:8101");
  EXPECT_EQ(TextOf("", kHere, "0.0.0.0:8101"), text) << "a restart listens where it did";
  EXPECT_NE(TextOf("", kHere, "0.0.0.0:8102"), text);
  EXPECT_NE(TextOf("", {"boot", "container"}, "0.0.0.0:8101"), text) << "pods all listen on 8101";
  EXPECT_NE(TextOf("", {"other", "network"}, "0.0.0.0:8101"), text) << "so do machines";
}

TEST_F(StageIdentityTest, AnyFreePortOrAnUnknownMachineIsNoPlace) {
  EXPECT_NE(TextOf("", kHere, ""), TextOf("", kHere, ""));
  EXPECT_NE(TextOf("", {}, "0.0.0.0:8101"), TextOf("", {}, "0.0.0.0:8101"));
}

TEST_F(StageIdentityTest, AFolderKeepsItWhateverThePort) {
  const std::string text = TextOf(folder_, kHere, "");
  EXPECT_EQ(TextOf(folder_, kHere, "0.0.0.0:8101"), text);
  EXPECT_EQ(TextOf(folder_, {"boot", "another network"}, ""), text) << "a container made anew";
  EXPECT_NE(TextOf(folder_ + "/b", kHere, ""), text);
}

// A virtual machine was cloned with the state of its stage.
TEST_F(StageIdentityTest, ACopiedFolderIsAnotherStageOnAnotherMachine) {
  const std::string text = TextOf(folder_, kHere, "");
  std::filesystem::copy(folder_, folder_ + "-copy");
  EXPECT_NE(TextOf(folder_ + "-copy", {"clone", "network"}, ""), text);
}

TEST_F(StageIdentityTest, TwoLivingProcessesDoNotShareAFolder) {
  const std::unique_ptr<StageIdentity> first = Make(folder_, kHere, "");
  EXPECT_NE(TextOf(folder_, kHere, ""), first->text());
  EXPECT_NE(TextOf(folder_, kHere, ""), first->text()) << "nor does a third";
}

TEST_F(StageIdentityTest, AFileThatACrashLeftHalfWrittenIsWrittenAnew) {
  temporary_.Write("state/identity", "0123");
  const std::string text = TextOf(folder_, kHere, "");
  EXPECT_EQ(TextOf(folder_, kHere, ""), text);
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/identity"), 33u);
}

TEST_F(StageIdentityTest, AFolderThatCannotBeMadeIsNamed) {
  temporary_.Write("state", "a file");
  const absl::Status status = StageIdentity::Make(folder_, kHere, "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--state-dir: " + folder_));
}

TEST_F(StageIdentityTest, ThisMachineHasABootAndANetwork) {
  EXPECT_EQ(ThisMachine().boot, ThisMachine().boot);
  EXPECT_FALSE(ThisMachine().boot.empty());
  EXPECT_FALSE(ThisMachine().network.empty());
  EXPECT_FALSE(HostName().empty());
}

}  // namespace
}  // namespace stagecoach
