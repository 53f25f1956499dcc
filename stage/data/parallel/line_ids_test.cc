#include "stage/data/parallel/line_ids.h"

#include <string>
#include <vector>

#include "base/files/gzip_testing.h"
#include "base/testing/temporary_folder.h"
#include "gtest/gtest.h"
#include "stage/data/parallel/pair_network_testing.h"

namespace stagecoach {
namespace {

class LineIdsTest : public testing::Test {
 protected:
  // Checks that the file has the ids of the lines, at the places that the reader says.
  void ExpectIds(const std::string& stored, const std::vector<std::string>& lines) {
    const SentenceFile file{.field = "data.x", .path = folder_.Write("lines", stored)};
    for (const bool survey : {false, true}) {
      SentenceFile asked = file;
      if (survey) asked.survey_bytes = int64_t{1} << 40;
      const absl::StatusOr<LineIds> ids = OpenLineIds(*roots_, asked, *tokenizer_);
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_TRUE(ids->whole);
      LineIdsReader reader(*ids);
      for (size_t i = 0; i < lines.size(); ++i) {
        const auto line = reader.Next();
        ASSERT_TRUE(line.ok() && line->has_value()) << i;
        const std::vector<int32_t> read((*line)->begin(), (*line)->end());
        ASSERT_EQ(read, tokenizer_->Encode(lines[i]).value()) << i;
        EXPECT_EQ(reader.line(), static_cast<int64_t>(i) + 1);
        std::vector<int32_t> there(read.size());
        ASSERT_TRUE(ids->ids->Read(reader.begin(), there).ok());
        ASSERT_EQ(there, read) << i;
      }
      EXPECT_EQ(reader.Next().value(), std::nullopt);
    }
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<DataRoots> roots_ = DataRoots::Everything({}, folder_.MakeFolder("cache"));
  const std::unique_ptr<const Tokenizer> tokenizer_ =
      Tokenizer::Parse(ModelFileText(PairPieces())).value();
};

TEST_F(LineIdsTest, EmptyLinesAndLinesWithoutAnEndCount) {
  ExpectIds("\n", {""});
  ExpectIds("\nab\n\n  \nc", {"", "ab", "", "  ", "c"});
  ExpectIds(Gzipped("ab\r\n\r\nc\r\n"), {"ab", "", "c"});
}

// A line may go over the border of what is read at once.
TEST_F(LineIdsTest, AreReadPieceByPiece) {
  std::vector<std::string> lines;
  std::string text;
  for (int i = 0; i < 24; ++i) {
    lines.push_back(i % 5 == 4 ? ""
                               : std::string(kMostSentenceBytes - static_cast<size_t>(i), 'x'));
    text += lines.back() + "\n";
  }
  ExpectIds(text, lines);
}

TEST_F(LineIdsTest, ASurveyReadsTheBeginning) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "ab\n";
  const SentenceFile file{
      .field = "data.x", .path = folder_.Write("lines", text), .survey_bytes = 1'500'000};
  const absl::StatusOr<LineIds> ids = OpenLineIds(*roots_, file, *tokenizer_);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_FALSE(ids->whole);
  EXPECT_GT(ids->ids->tokens(), 4 * 300'000);
  EXPECT_LT(ids->ids->tokens(), 4 * 1'000'000);
}

}  // namespace
}  // namespace stagecoach
