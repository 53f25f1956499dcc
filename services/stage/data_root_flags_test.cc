#include "services/stage/data_root_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

class DataRootFlagsTest : public ::testing::Test {
 protected:
  DataRootFlagsTest() {
    std::filesystem::create_directories(folder_ + "/data");
    std::ofstream(folder_ + "/data/in.txt") << "in";
    std::ofstream(folder_ + "/key.pem") << "key";
    std::ofstream(folder_ + "/tokens") << "tokens";
    flags_.server.tls.server_key = folder_ + "/key.pem";
    flags_.server.http_token_file = folder_ + "/tokens";
  }
  ~DataRootFlagsTest() override { std::filesystem::remove_all(folder_); }

  bool Reads(const std::string& name) const {
    const auto roots = MakeDataRoots(flags_);
    EXPECT_TRUE(roots.ok()) << roots.status();
    return roots.ok() && (*roots)->OpenFile(absl::StrCat(folder_, "/", name)).ok();
  }

  const std::string folder_ = absl::StrCat(
      ::testing::TempDir(), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
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
  const auto refused = (*MakeDataRoots(flags_))->OpenFile(folder_ + "/data/in.txt").status();
  EXPECT_THAT(refused.ToString(), HasSubstr("--data-root"));
}

TEST_F(DataRootFlagsTest, RootsHoldOnLoopbackToo) {
  flags_.data_roots = {folder_ + "/data"};
  std::ofstream(folder_ + "/other.txt") << "other";
  std::filesystem::create_symlink("in.txt", folder_ + "/data/link.txt");
  for (const char* listen : {"127.0.0.1:8101", "0.0.0.0:8101"}) {
    flags_.server.listen = listen;
    EXPECT_TRUE(Reads("data/in.txt"));
    EXPECT_FALSE(Reads("other.txt"));
    EXPECT_FALSE(Reads("data/link.txt"));
  }
  flags_.data_follow_links = true;
  EXPECT_TRUE(Reads("data/link.txt"));
  flags_.data_roots = {folder_};
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
