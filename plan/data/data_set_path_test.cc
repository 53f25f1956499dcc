#include "plan/data/data_set_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

const std::string kId(64, 'a');

TEST(DataSetPathTest, IsReadAsItIsWritten) {
  for (const std::string& set : {kId, std::string("image-net")}) {
    for (const std::string path : {"", "a", "train/a b.tar", "ü/..."}) {
      const DataSetPath made{.set = set, .path = path};
      const auto parsed = ParseDataSetPath(made.Text());
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(*parsed, made);
      EXPECT_TRUE(IsDataSetPath(made.Text()));
    }
  }
}

TEST(DataSetPathTest, RefusesWhatLeadsElsewhere) {
  for (const std::string path : {"..", "a/..", "a//b", "/a", "a/", "./a", "a/\n", "\xff"}) {
    EXPECT_FALSE(CheckPathInSet(path).ok()) << path;
    EXPECT_FALSE(ParseDataSetPath("store:/data/" + kId + "/" + path).ok()) << path;
  }
  EXPECT_FALSE(CheckPathInSet(std::string(5000, 'a')).ok());
  std::string deep = "a";
  for (int i = 1; i < 64; ++i) deep += "/a";
  EXPECT_TRUE(CheckPathInSet(deep).ok());
  EXPECT_FALSE(CheckPathInSet(deep + "/a").ok());
  for (const std::string text :
       {"", "store:/data/", "store:/data/A", "store:/data/../x", "/data"}) {
    EXPECT_FALSE(ParseDataSetPath(text).ok()) << text;
  }
  EXPECT_THAT(std::string(CheckPathInSet("a/..").message()), HasSubstr("\"a/..\""));
}

TEST(DataSetPathTest, TellsDigestsFromNames) {
  EXPECT_TRUE(IsDigest(kId));
  EXPECT_FALSE(IsDigest(std::string(63, 'a')));
  EXPECT_FALSE(IsDigest(std::string(64, 'A')));
}

}  // namespace
}  // namespace stagecoach
