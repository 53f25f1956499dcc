#include "services/common/flags/flag_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "services/common/flags/exit_code.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Options {
  std::string name = "before", color = "red", from_environment, folder = "state";
  std::vector<std::string> hosts;
  bool loud = false;
  int threads = 2;
  int64_t bytes = 0;
  double seconds = 1.5;
};

std::optional<int> Parse(std::vector<const char*> words, Options* options) {
  FlagParser parser("A program.");
  parser.Text("--name", &options->name, "who");
  parser.Text("--address", &options->from_environment, "where", "FLAG_PARSER_TEST_ADDRESS");
  parser.Path("--folder", &options->folder, "a folder");
  parser.OneOf("--color", &options->color, "how it looks", {"red", "green"});
  parser.Texts("--host", &options->hosts, "repeatable");
  parser.Switch("--loud", &options->loud, "or not", "FLAG_PARSER_TEST_LOUD");
  parser.Number("--threads", &options->threads, "how many", 1, 8);
  parser.Number("--bytes", &options->bytes, "how much", 0, int64_t{1} << 40);
  parser.Number("--seconds", &options->seconds, "how long", 0.5, 60.0);
  words.insert(words.begin(), "program");
  return parser.Parse(static_cast<int>(words.size()), words.data());
}

TEST(FlagParser, LeavesWhatIsNotGivenAndTakesWhatIs) {
  Options options;
  EXPECT_EQ(Parse({}, &options), std::nullopt);
  EXPECT_EQ(options.name, "before");
  EXPECT_EQ(Parse({"--name=after", "--host", "a", "--host", "b", "--loud", "--threads", "8",
                   "--bytes", "5000000000", "--seconds=0.5", "--color=green"},
                  &options),
            std::nullopt);
  EXPECT_EQ(options.name, "after");
  EXPECT_THAT(options.hosts, ElementsAre("a", "b"));
  EXPECT_TRUE(options.loud);
  EXPECT_EQ(options.threads, 8);
  EXPECT_EQ(options.bytes, 5000000000);
  EXPECT_EQ(options.seconds, 0.5);
  EXPECT_EQ(options.color, "green");
}

TEST(FlagParser, ReadsTheEnvironmentWhereTheFlagIsMissing) {
  setenv("FLAG_PARSER_TEST_ADDRESS", "there:1", 1);
  Options options;
  EXPECT_EQ(Parse({}, &options), std::nullopt);
  EXPECT_EQ(options.from_environment, "there:1");
  EXPECT_EQ(Parse({"--address=here:2"}, &options), std::nullopt);
  EXPECT_EQ(options.from_environment, "here:2");
  unsetenv("FLAG_PARSER_TEST_ADDRESS");
  EXPECT_FALSE(options.loud);
  for (const auto& [value, loud] :
       {std::pair("1", true), {"true", true}, {"0", false}, {"", false}}) {
    setenv("FLAG_PARSER_TEST_LOUD", value, 1);
    Options switched;
    EXPECT_EQ(Parse({}, &switched), std::nullopt);
    EXPECT_EQ(switched.loud, loud) << value;
  }
  unsetenv("FLAG_PARSER_TEST_LOUD");
}

// Symptom: --token-file="$TOKENS" of an unset variable turned the login off, --state-dir=""
// aborted.
TEST(FlagParser, APathThatIsGivenIsNotEmpty) {
  Options options;
  EXPECT_EQ(Parse({}, &options), std::nullopt);
  EXPECT_EQ(options.folder, "state");
  EXPECT_EQ(Parse({"--folder", "there"}, &options), std::nullopt);
  EXPECT_EQ(options.folder, "there");
  EXPECT_EQ(Parse({"--folder", ""}, &options), kRefusedExitCode);
  EXPECT_EQ(Parse({"--folder="}, &options), kRefusedExitCode);
}

TEST(FlagParser, RefusesWhatIsNoNumber) {
  for (const char* text : {"--seconds=nan", "--seconds=-nan", "--seconds=inf", "--threads=nan"}) {
    Options options;
    EXPECT_EQ(Parse({text}, &options), kRefusedExitCode) << text;
    EXPECT_EQ(options.seconds, 1.5);
  }
}

TEST(FlagParser, RefusesWhatIsOutOfRangeByName) {
  for (const char* wrong : {"--threads=0", "--threads=9", "--seconds=61", "--bytes=-1",
                            "--color=blue", "--threads=two", "--unknown"}) {
    Options options;
    testing::internal::CaptureStderr();
    const std::optional<int> code = Parse({wrong}, &options);
    const std::string flag = std::string(wrong).substr(0, std::string(wrong).find('='));
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(flag));
    ASSERT_TRUE(code.has_value()) << wrong;
    EXPECT_EQ(*code, kRefusedExitCode) << wrong << ": starting it again is of no use";
  }
}

TEST(FlagParser, HelpAndVersionEndWithSuccessAndShowDefaults) {
  Options options;
  testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"--help"}, &options), 0);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, HasSubstr("before"));
  EXPECT_THAT(help, HasSubstr("1.5"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"--version"}, &options), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr(STAGECOACH_VERSION));
}

}  // namespace
}  // namespace stagecoach
