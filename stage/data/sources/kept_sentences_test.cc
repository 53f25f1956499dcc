// The cache of the ids of parallel text: made once for each content, never trusted.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/testing/file_text.h"
#include "base/threads/work_words.h"
#include "stage/data/batch_source.h"
#include "stage/data/sources/parallel_text_source_testing.h"

namespace stagecoach {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

class KeptSentencesTest : public ParallelTextTest {
 protected:
  // Opens the data; `encoded` becomes what was told of encoding at last, empty if nothing was.
  std::unique_ptr<BatchSource> OpenTold(std::string* encoded) {
    WorkWords words;
    const WorkWordsScope scope(&words);
    std::unique_ptr<BatchSource> source = Open();
    *encoded = words.words();
    return source;
  }
  void ExpectNothingIsEncoded() {
    const std::map<std::string, std::filesystem::file_time_type> before = Written();
    std::string encoded;
    ASSERT_NE(OpenTold(&encoded), nullptr);
    EXPECT_EQ(encoded, "");
    EXPECT_EQ(Written(), before);
  }
  std::map<std::string, std::filesystem::file_time_type> Written() const {
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const std::string& path : Cached()) times[path] = std::filesystem::last_write_time(path);
    return times;
  }
};

TEST_F(KeptSentencesTest, ASecondLoadEncodesNothing) {
  AddPair(Sources(0, 100), Targets(0, 100));
  AddTests(Sources(200, 10), Targets(200, 10));
  spec_.evaluation.translate.emplace();
  std::string encoded;
  const auto first = OpenTold(&encoded);
  EXPECT_EQ(encoded, "encodes test_targets0: 100 %");
  EXPECT_EQ(Cached().size(), 4u);
  ExpectNothingIsEncoded();
  const auto second = Open();
  EXPECT_EQ(second->manifest(), first->manifest());
  EXPECT_EQ(Train(*second, 7), Train(*first, 7));
  EXPECT_EQ(Evaluate(*second), Evaluate(*first));
  // The name does not count.
  std::filesystem::rename(folder_.File("targets0"), folder_.File("moved"));
  data_.targets = {folder_.File("moved")};
  ExpectNothingIsEncoded();
  folder_.Write("moved", Targets(100, 100));
  OpenTold(&encoded);
  EXPECT_EQ(encoded, "encodes moved: 100 %");
  EXPECT_EQ(Cached().size(), 5u);
}

TEST_F(KeptSentencesTest, AStageThatReadsOneSideFindsBoth) {
  AddPair(Sources(0, 100), Targets(0, 100));
  const auto all = Open();
  WorkWords words;
  const WorkWordsScope scope(&words);
  const std::vector<std::string> targets = {"targets"};
  const auto last = OpenSource(spec_, PairNetwork(form_), targets, *roots_);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(words.words(), "");
  EXPECT_EQ((*last)->Train(1, MicroBatchId(0), targets)->arrays[0],
            all->Train(1, MicroBatchId(0), names_)->arrays[3]);
}

TEST_F(KeptSentencesTest, AFileOfSeveralPairsIsEncodedOnceWhateverItsTag) {
  const std::string sources = Sources(0, 60);
  AddPair(sources, Targets(0, 60), "<2de>");
  AddPair(sources, Targets(100, 60), "<2fr>");
  data_.sources[1] = data_.sources[0];
  const auto source = Open();
  EXPECT_EQ(Cached().size(), 3u);
  std::set<int32_t> tags;
  for (uint64_t step = 0; step < 20; ++step) {
    for (const PairRow& row : Train(*source, step)) {
      tags.insert(row.source.front());
      EXPECT_EQ(std::stoi(row.Target()) - NumberOf(row), row.source.front() == kPairDe ? 0 : 100);
    }
  }
  EXPECT_EQ(tags, (std::set<int32_t>{kPairDe, kPairFr}));
}

// The same bytes are other ids.
TEST_F(KeptSentencesTest, SidesOfATabAndTokenizersAreKeptApart) {
  AddPair("a\tb\nc\td\ne\tf\n", "");
  data_.targets.clear();
  Open();
  EXPECT_EQ(Cached().size(), 2u);
  ExpectNothingIsEncoded();
  std::vector<Piece> pieces = PairPieces();
  pieces.back().text = "<2cs>";
  folder_.Write("tokenizer", ModelFileText(pieces));
  std::string encoded;
  OpenTold(&encoded);
  EXPECT_EQ(encoded, "encodes sources0: 100 %");
  EXPECT_EQ(Cached().size(), 4u);
}

TEST_F(KeptSentencesTest, ADamagedFileIsMadeAgain) {
  AddPair(Sources(0, 100), Targets(0, 100));
  const auto good = Open();
  const std::vector<PairRow> rows = Train(*good, 7);
  const std::vector<std::string> kept = Cached();
  ASSERT_EQ(kept.size(), 2u);
  for (const std::string& path : kept) {
    const std::string bytes = FileText(path);
    std::vector<std::string> bad = {"", bytes.substr(0, bytes.size() - 4), bytes.substr(4),
                                    bytes + bytes};
    for (const size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      bad.push_back(bytes);
      bad.back()[at] = static_cast<char>(bad.back()[at] ^ 1);
    }
    for (const std::string& other : bad) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << other;
      std::string encoded;
      const auto source = OpenTold(&encoded);
      EXPECT_NE(encoded, "");
      EXPECT_EQ(source->manifest(), good->manifest());
      EXPECT_EQ(Train(*source, 7), rows);
      EXPECT_EQ(FileText(path), bytes);
      EXPECT_THAT(Cached(), UnorderedElementsAreArray(kept)) << "nothing unfinished is left";
    }
  }
}

// Anybody may empty the folder.
TEST_F(KeptSentencesTest, TrainingGoesOnWhenTheFolderIsEmptied) {
  AddPair(Sources(0, 100), Targets(0, 100));
  const auto source = Open();
  const std::vector<PairRow> rows = Train(*source, 7);
  for (const std::string& path : Cached()) std::filesystem::remove(path);
  EXPECT_EQ(Train(*source, 7), rows);
  EXPECT_EQ(Train(*Open(), 7), rows);
  EXPECT_EQ(Cached().size(), 2u);
}

// It is no fault of the data: the next load makes the ids again.
TEST_F(KeptSentencesTest, AFileThatIsCutWhileTheJobTrainsIsNoBadRecord) {
  AddPair(Sources(0, 100), Targets(0, 100));
  const auto source = Open();
  for (const std::string& path : Cached()) std::filesystem::resize_file(path, 0);
  const absl::Status status = source->Train(7, MicroBatchId(0), names_).status();
  EXPECT_TRUE(absl::IsUnavailable(DataError(status))) << status;
  EXPECT_TRUE(Open()->Train(7, MicroBatchId(0), names_).ok());
}

TEST_F(KeptSentencesTest, LinesThatAreRefusedAreNotKept) {
  AddPair("a\nb\n", "a\n\xff\n");
  EXPECT_FALSE(TryOpen().ok());
  EXPECT_EQ(Cached().size(), 1u) << "of the sources";
  folder_.Write("sources0", "\xff\n");
  folder_.Write("targets0", "a\n");
  for (const std::string& path : Cached()) std::filesystem::remove(path);
  EXPECT_FALSE(TryOpen().ok());
  EXPECT_THAT(Cached(), IsEmpty()) << "nothing unfinished is left";
}

}  // namespace
}  // namespace stagecoach
