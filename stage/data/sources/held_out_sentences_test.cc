// The texts of held-out sentences, for evaluation.translate.
#include "stage/data/sources/parallel_text_source_testing.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

class HeldOutSentencesTest : public ParallelTextTest {
 protected:
  HeldOutSentencesTest() { spec_.evaluation.translate.emplace(); }
  // "number source=target" of each, in the order of the evaluation.
  std::vector<std::string> Sentences(const BatchSource& source) const {
    std::vector<std::string> all;
    for (int64_t b = 0; b < source.evaluation_batches(); ++b) {
      for (int i = 0; i < spec_.training.micro_batches; ++i) {
        for (const HeldOutSentence& one :
             source.Sentences(static_cast<uint64_t>(b), MicroBatchId(i))) {
          all.push_back(
              absl::StrCat(one.number, " ", std::string(one.source), "=", std::string(one.target)));
        }
      }
    }
    return all;
  }
};

TEST_F(HeldOutSentencesTest, OfTestFilesAreAsTheFilesHaveThem) {
  AddPair(Sources(0, 100), Targets(0, 100));
  AddTests("ccc  c\n\na\n\tbb\n", "c  C.\n\na\nb\n");
  spec_.training.batch_size = 2;
  const auto source = Open();
  EXPECT_THAT(Sentences(*source), ElementsAre("1 a=a", "2 \tbb=b", "0 ccc  c=c  C."))
      << "by length, numbered as in the file, with their white space";
  ASSERT_NE(source->tokenizer(), nullptr);
  EXPECT_EQ(source->tokenizer()->Decode(std::vector{PairLetter('a'), PairLetter('b')}).value(),
            "ab");
}

// The first ones are translated, not the shortest.
TEST_F(HeldOutSentencesTest, ThoseToTranslateComeFirst) {
  AddPair(Sources(0, 100), Targets(0, 100));
  AddTests("dddd\nccc\nbb\na\n", "1\n2\n3\n4\n");
  spec_.training.batch_size = 2;
  spec_.evaluation.translate->batches = 1;
  EXPECT_THAT(Sentences(*Open()), ElementsAre("1 ccc=2", "0 dddd=1", "3 a=4", "2 bb=3"));
  spec_.evaluation.translate->batches = 0;
  EXPECT_THAT(Sentences(*Open()), ElementsAre("3 a=4", "2 bb=3", "1 ccc=2", "0 dddd=1"));
}

// The last 2 % of the lines of each file, of which some are left out.
TEST_F(HeldOutSentencesTest, OfFilesToTrainOnAreTheirEnds) {
  const std::string longer(60, 'x');
  AddPair(absl::StrCat(Sources(0, 146), longer, "\n147\n", longer, "\n149\n"),
          absl::StrCat(Targets(0, 146), "146\nA\n148\nB\n"));
  AddPair(Sources(1000, 20), Targets(1000, 20));
  const auto source = Open();
  const std::vector<std::string> sentences = Sentences(*source);
  const std::vector<PairRow> rows = Evaluate(*source);
  ASSERT_EQ(sentences.size(), rows.size());
  EXPECT_EQ(sentences.size(), 3u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(sentences[i].substr(2), absl::StrCat(rows[i].Source(), "=", rows[i].Target()));
  }
  EXPECT_THAT(sentences, testing::Contains("0 147=A"));
  EXPECT_THAT(sentences, testing::Contains("2 149=B")) << "files take turns";
}

// What follows the last kept pair may push the border beyond it.
TEST_F(HeldOutSentencesTest, PairsLeftOutAtTheEndMoveTheBorder) {
  std::string sources = Sources(0, 98), targets = Targets(0, 98);
  for (int i = 0; i < 30; ++i) {
    sources += std::string(60, 'x') + "\n";
    targets += "y\n";
  }
  AddPair(sources + "200\n", targets + "C\n");
  EXPECT_THAT(Sentences(*Open()), ElementsAre("0 200=C"));
}

}  // namespace
}  // namespace stagecoach
