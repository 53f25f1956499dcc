// Lines of jobs with `write`.
#include <algorithm>

#include "plan/job/sorted_lines.h"
#include "stage/data/sources/parallel_text_source_testing.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

class LineSourceTest : public ParallelTextTest {
 protected:
  std::unique_ptr<BatchSource> OpenWith(std::vector<std::string> lines) {
    AddPair(Sources(0, 4), Targets(0, 4));
    spec_.initialize.from = "/exports";
    spec_.evaluation = {};
    spec_.write = WriteSpec{.lines = std::move(lines), .translate = TranslateSpec()};
    return Open();
  }
  std::vector<int64_t> Numbers(const BatchSource& source, uint64_t batch) const {
    std::vector<int64_t> numbers;
    for (int i = 0; i < spec_.training.micro_batches; ++i) {
      for (const LineToWrite& line : source.Lines(batch, MicroBatchId(i))) {
        EXPECT_EQ(line.text, spec_.write->lines[static_cast<size_t>(line.number)]);
        numbers.push_back(line.number);
      }
    }
    return numbers;
  }
};

std::vector<int32_t> IdsOf(const std::vector<std::byte>& bytes) {
  const auto* const ids = reinterpret_cast<const int32_t*>(bytes.data());
  return {ids, ids + bytes.size() / sizeof(int32_t)};
}

TEST_F(LineSourceTest, SentencesOfOneLengthAreTogether) {
  spec_.training.batch_size = 2;
  spec_.training.micro_batches = 2;
  const auto source = OpenWith({"ccc", "a", "bb", "d", "ee"});
  EXPECT_THAT(Numbers(*source, 0), ElementsAre(1, 3));
  EXPECT_THAT(Numbers(*source, 1), ElementsAre(2, 4));
  EXPECT_THAT(Numbers(*source, 2), ElementsAre(0)) << "the last one may be short";
  EXPECT_THAT(Numbers(*source, 3), ElementsAre()) << "and there are no more";
  EXPECT_EQ(source->manifest().bytes, 9);
}

TEST_F(LineSourceTest, GivesIdsWithEndsAndPadding) {
  spec_.training.batch_size = 3;
  spec_.training.micro_batches = 1;
  const auto source = OpenWith({"b", "aab", "ab"});
  const std::vector<std::string> names = {"source_length", "source"};
  const auto batch = source->Evaluation(0, MicroBatchId(0), names);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->samples, 3);
  EXPECT_EQ(batch->lengths.of(Length::kSource), std::ssize(IdsOf(batch->arrays[1])) / 3);
  const std::vector<int32_t> lengths = IdsOf(batch->arrays[0]), ids = IdsOf(batch->arrays[1]);
  EXPECT_TRUE(std::is_sorted(lengths.begin(), lengths.end()));
  const size_t width = ids.size() / 3;
  EXPECT_EQ(lengths[2], std::ssize(ids) / 3) << "as long as the longest";
  const Tokenizer& tokenizer = *source->tokenizer();
  for (size_t i = 0; i < 3; ++i) {
    const auto end = static_cast<size_t>(lengths[i]);
    EXPECT_EQ(ids[i * width + end - 1], tokenizer.end());
    for (size_t k = end; k < width; ++k) EXPECT_EQ(ids[i * width + k], tokenizer.pad());
  }
}

// Then texts have the same bits, as no product has other rows.
TEST_F(LineSourceTest, AGroupHasTheSameLinesHoweverManyAMiniBatchHas) {
  constexpr int64_t kGroupLines = 2;
  std::vector<std::string> lines;
  for (int64_t i = 0; i < 2 * kSortedGroups * kGroupLines + 5; ++i) {
    lines.push_back(std::string(static_cast<size_t>(1 + i * 7 % 5), 'a'));
  }
  const std::vector<std::string> names = {"source"};
  const auto groups = [&](int64_t at_once) {
    spec_.training.batch_size = at_once * kGroupLines;
    spec_.training.micro_batches = at_once;
    const auto source = OpenWith(lines);
    std::vector<std::pair<std::vector<int64_t>, std::vector<int32_t>>> found;
    for (uint64_t batch = 0; std::ssize(found) * kGroupLines < std::ssize(lines); ++batch) {
      for (int i = 0; i < at_once; ++i) {
        const HostBatch one = source->Evaluation(batch, MicroBatchId(i), names).value();
        if (one.samples == 0) continue;
        std::vector<int64_t> numbers;
        for (const LineToWrite& line : source->Lines(batch, MicroBatchId(i))) {
          numbers.push_back(line.number);
        }
        found.emplace_back(std::move(numbers), IdsOf(one.arrays[0]));
      }
    }
    return found;
  };
  const auto expected = groups(1);
  EXPECT_LT(expected.front().second.size(), expected.at(kSortedGroups - 1).second.size())
      << "sorted, and padded to the longest of the group";
  for (const int64_t at_once : {2, 3, 8}) EXPECT_EQ(groups(at_once), expected) << at_once;
}

// Two data sets of a job are told apart by it.
TEST_F(LineSourceTest, TheDigestIsOfLinesAndTokenizer) {
  const std::string digest = OpenWith({"a", "b"})->manifest().sha256;
  EXPECT_EQ(OpenWith({"a", "b"})->manifest().sha256, digest);
  EXPECT_NE(OpenWith({"ab"})->manifest().sha256, digest);
  EXPECT_NE(OpenWith({"b", "a"})->manifest().sha256, digest);
}

}  // namespace
}  // namespace stagecoach
