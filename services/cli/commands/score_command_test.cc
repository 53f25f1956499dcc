// `score` on files, good and bad. Expected lines are what sacrebleu 2.6.0 prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/files/gzip_testing.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/command_line.h"
#include "services/cli/scores/line_file.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr char kHypotheses[] =
    "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n";
constexpr char kFirst[] = "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n";
constexpr char kSecond[] =
    "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n";

class ScoreCommandTest : public testing::Test {
 protected:
  int Score(const std::vector<std::string>& words) {
    std::vector<const char*> all = {"stagecoach", "score"};
    for (const std::string& word : words) all.push_back(word.c_str());
    out_.str("");
    notes_.str("");
    return RunCommandLine(static_cast<int>(all.size()), all.data(), &console_, &stop_);
  }
  std::string File(const std::string& name, std::string_view text) const {
    return folder_.Write(name, text);
  }
  // What is said of two files that cannot be scored.
  std::string Refusal(std::string_view hypotheses, std::string_view references, int code = 2) {
    EXPECT_EQ(Score({File("h.txt", hypotheses), File("r.txt", references)}), code);
    EXPECT_EQ(out_.str(), "");
    return notes_.str();
  }

  TemporaryFolder folder_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  const std::string hypotheses_ = File("hypotheses", kHypotheses), first_ = File("first", kFirst),
                    second_ = File("second", kSecond);
};

TEST_F(ScoreCommandTest, PrintsBothScoresAsSacrebleuDoes) {
  EXPECT_EQ(Score({hypotheses_, first_, second_}), 0) << notes_.str();
  EXPECT_EQ(out_.str(),
            "  BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 48.5 "
            "82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)\n"
            "chrF2|nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 59.7\n");
  EXPECT_EQ(notes_.str(), "");
}

TEST_F(ScoreCommandTest, TakesOneMetricItsTokensAndItsDigits) {
  EXPECT_EQ(Score({"--metric", "bleu", hypotheses_, first_, second_, "--tokenize", "none",
                   "--width", "4"}),
            0)
      << notes_.str();
  EXPECT_EQ(out_.str(),
            "BLEU|nrefs:2|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0 = 49.1920 "
            "71.4/54.5/50.0/40.0 (BP = 0.931 ratio = 0.933 hyp_len = 14 ref_len = 15)\n");
  EXPECT_EQ(Score({hypotheses_, first_, "--metric", "chrf", "--width", "0"}), 0) << notes_.str();
  EXPECT_EQ(out_.str(), "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 50\n");
}

TEST_F(ScoreCommandTest, TellsProgramsAllOfIt) {
  EXPECT_EQ(Score({hypotheses_, first_, second_, "-o", "json"}), 0) << notes_.str();
  const Json told = Json::parse(out_.str());
  EXPECT_EQ(told["hypotheses"], hypotheses_);
  EXPECT_EQ(told["references"], Json({first_, second_}));
  EXPECT_EQ(told["lines"], 3);
  ASSERT_EQ(told["scores"].size(), 2u);
  const Json bleu = told["scores"][0], chrf = told["scores"][1];
  EXPECT_EQ(bleu["name"], "BLEU");
  EXPECT_DOUBLE_EQ(bleu["score"], 48.530827009929865);
  EXPECT_EQ(bleu["signature"], "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  EXPECT_DOUBLE_EQ(bleu["precisions"][0], 82.3529411764706);
  EXPECT_EQ(bleu["matches"], Json({14, 7, 5, 3}));
  EXPECT_EQ(bleu["totals"], Json({17, 14, 11, 8}));
  EXPECT_DOUBLE_EQ(bleu["brevity_penalty"], 0.9428731438548749);
  EXPECT_EQ(bleu["hypothesis_length"], 17);
  EXPECT_EQ(bleu["reference_length"], 18);
  EXPECT_EQ(chrf["name"], "chrF2");
  EXPECT_DOUBLE_EQ(chrf["score"], 59.72751782684763);
  EXPECT_EQ(chrf["signature"], "nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0");
  EXPECT_EQ(Score({hypotheses_, first_, second_, "-o", "ndjson"}), 0);
  EXPECT_EQ(out_.str(), absl::StrCat(bleu.dump(), "\n", chrf.dump(), "\n"));
}

TEST_F(ScoreCommandTest, UnpacksGzipUnderAnyName) {
  ASSERT_EQ(Score({hypotheses_, first_}), 0);
  const std::string plain = out_.str();
  const std::string members =
      Gzipped("The dog bit the man.\nIt was not") + Gzipped(" unexpected.\nThe man bit him first.");
  EXPECT_EQ(Score({File("h.gz", Gzipped(kHypotheses)), File("packed", members)}), 0)
      << notes_.str();
  EXPECT_EQ(out_.str(), plain);
}

TEST_F(ScoreCommandTest, ReadsHypothesesFromStandardInput) {
  ASSERT_EQ(Score({hypotheses_, first_}), 0);
  const std::string from_file = out_.str();
  std::istringstream input(kHypotheses), short_input("a");
  std::streambuf* const before = std::cin.rdbuf(input.rdbuf());
  EXPECT_EQ(Score({"-", first_}), 0) << notes_.str();
  EXPECT_EQ(out_.str(), from_file);
  std::cin.clear();
  std::cin.rdbuf(short_input.rdbuf());
  EXPECT_EQ(Score({"-", first_}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("standard input has 1 lines, "));
  std::cin.clear();
  std::cin.rdbuf(before);
}

TEST_F(ScoreCommandTest, RefusesFilesOfOtherLengthsWithBothCounts) {
  EXPECT_EQ(Score({hypotheses_, first_, File("short", "a\nb\n")}), 2);
  EXPECT_EQ(notes_.str(),
            absl::StrCat("stagecoach: ", hypotheses_, " has 3 lines, ", folder_.File("short"),
                         " has 2; each line needs its reference\n"));
  EXPECT_THAT(Refusal("a\n\n", "a\n"), HasSubstr("h.txt has 2 lines")) << "an empty one counts";
}

TEST_F(ScoreCommandTest, RefusesWhatIsNoTextWithFileAndLine) {
  EXPECT_THAT(Refusal("a\nb\n\xff\n", "a\nb\nc\n"),
              HasSubstr("h.txt:3: not UTF-8 text, or has a NUL; convert the file first"));
  EXPECT_THAT(Refusal("a\nb\n", std::string_view("a\nb\0\n", 5)), HasSubstr("r.txt:2: not UTF-8"));
  EXPECT_THAT(Refusal("a\n", ""), HasSubstr("r.txt: is empty"));
  EXPECT_THAT(Refusal("", "a\n"), HasSubstr("h.txt: is empty"));
  EXPECT_THAT(Refusal(Gzipped(""), "a\n"), HasSubstr("h.txt: is empty"));
  EXPECT_THAT(Refusal("PK\x03\x04\x14\xff", "a\n"), HasSubstr("h.txt: is a zip archive"));
}

TEST_F(ScoreCommandTest, RefusesDamagedGzipData) {
  const std::string packed = Gzipped(kHypotheses);
  EXPECT_THAT(Refusal(packed.substr(0, packed.size() - 3), kFirst, 1),
              HasSubstr("h.txt: its gzip data is cut off; give the whole file"));
  EXPECT_THAT(Refusal(packed + "b", kFirst, 1),
              HasSubstr("its gzip data has something else behind it; give the whole file"));
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;
  EXPECT_THAT(Refusal(damaged, kFirst, 1), HasSubstr("h.txt: its gzip checksum does not hold"));
}

TEST_F(ScoreCommandTest, RefusesFilesThatAreNotThereAndMissingWords) {
  EXPECT_EQ(Score({folder_.File("gone"), first_}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("gone: No such file or directory"));
  EXPECT_EQ(Score({hypotheses_, folder_.path()}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("is a folder; name a file in it"));
  EXPECT_EQ(Score({hypotheses_}), 2);
  EXPECT_EQ(Score({}), 2);
  EXPECT_EQ(Score({"--metric", "ter", hypotheses_, first_}), 2);
  EXPECT_EQ(Score({"--tokenize", "intl", hypotheses_, first_}), 2);
}

TEST(LineFile, HasTheLinesThatSacrebleuReads) {
  const auto lines = [](const std::string& text) {
    std::istringstream stream(text);
    return ReadLines(stream, "file");
  };
  EXPECT_THAT(*lines("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(*lines("\n"), ElementsAre(""));
  EXPECT_THAT(*lines(" a \r\nb\u2028c\u3000\n"), ElementsAre(" a", "b\u2028c"));
  EXPECT_THAT(*lines("\ufeff"
                     "a\n"),
              ElementsAre("\ufeff"
                          "a"));
  std::istringstream stream("12345");
  EXPECT_EQ(ReadLines(stream, "file", 4).status().message(), "file: has more than 4 bytes");
  std::istringstream bomb(Gzipped(std::string(1 << 22, 'a')));
  EXPECT_EQ(ReadLines(bomb, "file", 1 << 21).status().message(),
            "file: has more than 2097152 bytes, unpacked");
}

}  // namespace
}  // namespace stagecoach
