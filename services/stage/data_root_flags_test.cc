#include "services/stage/data_root_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

class DataRootFlagsTest : public ::testing::Test {
 protected:
  DataRootFlagsTest() {
    folder_.Write("data/in.txt", "in");
    flags_.server.tls.server_key = folder_.Write("key.pem", "key");
    flags_.server.http_token_file = folder_.Write("tokens", "tokens");
  }

  bool Reads(const std::string& name) const {
    const auto roots = MakeDataRoots(flags_);
    EXPECT_TRUE(roots.ok()) << roots.status();
    return roots.ok() && (*roots)->OpenFile(folder_.File(name)).ok();
  }

  const TemporaryFolder folder_;
  StageFlags flags_;
};

TEST_F(DataRootFlagsTest, WithoutRootsLoopbackReadsEverythingButSecretsOfItsOwn) {
  EXPECT_TRUE(Reads("data/in.txt"));
  EXPECT_FALSE(Reads("key.pem"));
  EXPECT_FALSE(Reads("tokens"));
}

TEST_F(DataRootFlagsTest, WithoutRootsOffLoopbackNothingIsRead) {
  flags_.server.listen = "0.0.0.0:8101";
  EXPECT_FALSE(Reads("data/in.txt"));
  const auto refused = (*MakeDataRoots(flags_))->OpenFile(folder_.File("data/in.txt")).status();
  EXPECT_THAT(refused.ToString(), HasSubstr("--data-root"));
}

TEST_F(DataRootFlagsTest, RootsHoldOnLoopbackToo) {
  flags_.data_roots = {folder_.File("data")};
  folder_.Write("other.txt", "other");
  std::filesystem::create_symlink("in.txt", folder_.File("data/link.txt"));
  for (const char* listen : {"127.0.0.1:8101", "0.0.0.0:8101"}) {
    flags_.server.listen = listen;
    EXPECT_TRUE(Reads("data/in.txt"));
    EXPECT_FALSE(Reads("other.txt"));
    EXPECT_FALSE(Reads("data/link.txt"));
  }
  flags_.data_follow_links = true;
  EXPECT_TRUE(Reads("data/link.txt"));
  flags_.data_roots = {folder_.path()};
  EXPECT_FALSE(Reads("key.pem"));
}

TEST_F(DataRootFlagsTest, FlagsThatSayNothingAreRefused) {
  flags_.data_roots = {""};
  EXPECT_THAT(MakeDataRoots(flags_).status().ToString(), HasSubstr("--data-root: is empty"));
  flags_.data_roots = {};
  flags_.data_follow_links = true;
  EXPECT_THAT(MakeDataRoots(flags_).status().ToString(), HasSubstr("--data-follow-links"));
}

}  // namespace
}  // namespace stagecoach
