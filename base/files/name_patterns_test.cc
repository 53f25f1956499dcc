#include "base/files/name_patterns.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

TEST(NamePatterns, AreThoseOfAShell) {
  for (const char* pattern : {"*", "model/0003/*", "*.weight", "model/*/qkv.*ight", "model/000?/**",
                              "model/0003/qkv.weight"}) {
    EXPECT_TRUE(MatchesPattern(pattern, "model/0003/qkv.weight")) << pattern;
  }
  for (const char* pattern : {"", "model", "*.bias", "model/0003/", "?odel/*/qkv", "*weight?"}) {
    EXPECT_FALSE(MatchesPattern(pattern, "model/0003/qkv.weight")) << pattern;
  }
}

TEST(NamePatterns, AreOnlySoManyAndSoLong) {
  EXPECT_TRUE(CheckPatterns(std::vector<std::string>(256, std::string(256, '*')), "a.b").ok());
  EXPECT_THAT(std::string(CheckPatterns(std::vector<std::string>(257, "*"), "a.b").message()),
              HasSubstr("a.b: 257 patterns; at most 256"));
  EXPECT_THAT(std::string(CheckPatterns({"*", std::string(257, '*')}, "a.b").message()),
              HasSubstr("a.b[1]: a pattern of 257 bytes"));
}

}  // namespace
}  // namespace stagecoach
