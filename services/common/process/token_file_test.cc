// Which tokens are let in, which files are taken, and that a file that changed counts at once.
#include "services/common/process/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TokenLines, SayWhoAndWhetherForControl) {
  const std::string digest = Sha256Hex("secret");
  const auto lines = ParseTokenLines(
      kHttpTokens, "f",
      absl::StrCat("# people\n\nann ", digest, "\n  bob\t", digest, "  control\r\n"));
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[0].name, "ann");
  EXPECT_FALSE((*lines)[0].marked);
  EXPECT_EQ((*lines)[1].digest, digest);
  EXPECT_TRUE((*lines)[1].marked);
}

TEST(TokenLines, ThatAreWrongAreNamedWithoutWhatTheySay) {
  const std::string digest = Sha256Hex("secret");
  for (const std::string& line :
       {std::string("ann"), std::string("ann TheTokenItself"), absl::StrCat("ann ", digest, "0"),
        absl::StrCat("ann ", digest, " kontrol"), absl::StrCat("ann ", digest, " control too"),
        absl::StrCat("a/b ", digest), absl::StrCat(digest, " ann")}) {
    const auto lines = ParseTokenLines(kHttpTokens, "tokens", absl::StrCat("# first\n", line));
    EXPECT_EQ(lines.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(lines.status().message()),
                AllOf(HasSubstr("--http-token-file=tokens: line 2: "), Not(HasSubstr("TheToken"))));
  }
}

TEST(TokenLines, HaveTheMarkOfTheirUseAlone) {
  const std::string digest = Sha256Hex("secret");
  EXPECT_TRUE(ParseTokenLines(kUserTokens, "f", absl::StrCat("ann ", digest, " operator"))
                  .value()[0]
                  .marked);
  const auto wrong = ParseTokenLines(kUserTokens, "f", absl::StrCat("ann ", digest, " control"));
  EXPECT_THAT(std::string(wrong.status().message()),
              AllOf(HasSubstr("--token-file=f: line 1"), HasSubstr("operator")));
}

class TokenFileTest : public ::testing::Test {
 protected:
  void Write(const std::string& text, mode_t mode = 0600) {
    folder_.Write("tokens", text);
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  std::string Line(const std::string& name, const std::string& token) {
    return absl::StrCat(name, " ", Sha256Hex(token), "\n");
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("tokens");
};

TEST_F(TokenFileTest, LetsInWhoseLineIsThere) {
  Write(Line("ann", "a") + Line("bob", "b"));
  const auto file = TokenFile::Open(kHttpTokens, path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Find(Sha256Hex("b"))->name, "bob");
  EXPECT_FALSE((*file)->Find(Sha256Hex("c")).has_value());
  EXPECT_FALSE((*file)->Find("").has_value());
}

TEST_F(TokenFileTest, ThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640u, 0604u, 0660u, 0602u}) {
    Write(Line("ann", "a"), mode);
    const auto file = TokenFile::Open(kHttpTokens, path_);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition) << mode;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("chmod 0600"));
  }
  EXPECT_THAT(std::string(TokenFile::Open(kHttpTokens, "/no/such/file").status().message()),
              HasSubstr("--http-token-file=/no/such/file"));
  Write("# nobody\n");
  EXPECT_THAT(std::string(TokenFile::Open(kHttpTokens, path_).status().message()),
              HasSubstr("nobody"));
}

TEST_F(TokenFileTest, IsReadAgainWhenItHasChanged) {
  Write(Line("ann", "a"));
  const auto opened = TokenFile::Open(kHttpTokens, path_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  TokenFile& file = **opened;
  Write(Line("ann", "n"));  // as long as before, within the same moment
  EXPECT_FALSE(file.Find(Sha256Hex("a")).has_value());
  EXPECT_TRUE(file.Find(Sha256Hex("n")).has_value());
  Write("ann not-a-digest\n");
  EXPECT_FALSE(file.Find(Sha256Hex("n")).has_value()) << "what it cannot use lets nobody in";
  std::remove(path_.c_str());
  EXPECT_FALSE(file.Find(Sha256Hex("n")).has_value());
  Write(Line("ann", "n"), 0644);
  EXPECT_FALSE(file.Find(Sha256Hex("n")).has_value());
  Write(Line("ann", "n"));
  EXPECT_TRUE(file.Find(Sha256Hex("n")).has_value());
}

}  // namespace
}  // namespace stagecoach
