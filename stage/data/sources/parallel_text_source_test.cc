#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files/gzip_testing.h"
#include "base/threads/progress.h"
#include "stage/data/sources/parallel_text_source_testing.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// By hand: marks, tag, padding and shift of a mini-batch.
TEST_F(ParallelTextTest, MakesTheNetworksInputs) {
  data_.tags = {"<2de>"};
  data_.test_tags = {"<2de>"};
  AddPair("a\n", "b\n");
  AddTests("ab c\nd\n", "e\nfg\n");
  spec_.training.batch_size = 2;
  spec_.training.micro_batches = 1;
  const auto source = Open();
  const HostBatch batch = *source->Evaluation(0, MicroBatchId(0), names_);
  const auto letter = PairLetter;
  EXPECT_EQ(batch.samples, 2);
  // No bucket to train on is as long, so the lengths are the network's.
  EXPECT_EQ(batch.lengths.of(Length::kSource), 40);
  std::vector<int32_t> first = {kPairDe, kPairSpace, letter('d'), kPairEnd},
                       second = {kPairDe,    kPairSpace,  letter('a'), letter('b'),
                                 kPairSpace, letter('c'), kPairEnd};
  first.resize(40);
  second.resize(40);
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(Ids(batch.arrays[0]), first);
  EXPECT_THAT(Ids(batch.arrays[1]), ElementsAre(4, 7));
  const std::vector<PairRow> rows = RowsOf(batch);
  EXPECT_THAT(rows[0].tokens, ElementsAre(kPairBegin, kPairSpace, letter('f'), letter('g')));
  EXPECT_THAT(rows[0].targets, ElementsAre(kPairSpace, letter('f'), letter('g'), kPairEnd));
  EXPECT_THAT(rows[1].tokens, ElementsAre(kPairBegin, kPairSpace, letter('e')));
  EXPECT_THAT(rows[1].targets, ElementsAre(kPairSpace, letter('e'), kPairEnd));

  const HostBatch train = *source->Train(0, MicroBatchId(0), names_);
  EXPECT_EQ(train.samples, 2) << "the one pair twice";
  EXPECT_EQ(train.lengths.of(Length::kSource), 4);
  EXPECT_EQ(train.lengths.of(Length::kTarget), 3);
  EXPECT_THAT(Ids(train.arrays[0]), ElementsAre(kPairDe, kPairSpace, letter('a'), kPairEnd, kPairDe,
                                                kPairSpace, letter('a'), kPairEnd));
  EXPECT_THAT(Ids(train.arrays[2]), ElementsAre(kPairBegin, kPairSpace, letter('b'), kPairBegin,
                                                kPairSpace, letter('b')));
}

// Marks and padding of a tokenizer.json are those that tokenizer_config.json names.
TEST_F(ParallelTextTest, MakesTheNetworksInputsWithATokenizerJson) {
  nlohmann::json file = TokenizerJson({{"a", "b"}});
  file["added_tokens"] = {AddedTokenJson(257, "<s>"), AddedTokenJson(258, "</s>"),
                          AddedTokenJson(259, "<blank>"), AddedTokenJson(260, "<2de>", false)};
  data_.tokenizer = folder_.Write("tokenizer.json", file.dump());
  folder_.Write("tokenizer_config.json", R"({"bos_token": "<s>", "pad_token": "<blank>"})");
  form_ = {.source = 6, .target = 5, .vocabulary = 261, .ignored = 259};
  data_.tags = data_.test_tags = {"<2de>"};
  AddPair("a\n", "b\n");
  AddTests("ab \u00e9\nd\n", "e\nab ab\n");
  spec_.training.batch_size = 2;
  spec_.training.micro_batches = 1;
  const auto source = Open();
  const HostBatch batch = *source->Evaluation(0, MicroBatchId(0), names_);
  EXPECT_THAT(Ids(batch.arrays[0]), ElementsAre(260, 'd', 258, 259, 259, 259,  //
                                                260, 256, ' ', 0xc3, 0xa9, 258));
  EXPECT_THAT(Ids(batch.arrays[1]), ElementsAre(3, 6));
  EXPECT_THAT(Ids(batch.arrays[2]), ElementsAre(257, 256, ' ', 256, 259,  //
                                                257, 'e', 259, 259, 259));
  EXPECT_THAT(Ids(batch.arrays[3]), ElementsAre(256, ' ', 256, 258, 259,  //
                                                'e', 258, 259, 259, 259));
  // Kept ids are found again with the same marks only.
  EXPECT_EQ(Cached().size(), 4);
  folder_.Write("tokenizer_config.json",
                R"({"bos_token": "<s>", "eos_token": "<s>", "pad_token": "<blank>"})");
  const auto other = Open();
  const HostBatch ends = *other->Evaluation(0, MicroBatchId(0), names_);
  EXPECT_THAT(Ids(ends.arrays[3]), ElementsAre(256, ' ', 256, 257, 259,  //
                                               'e', 257, 259, 259, 259));
}

TEST_F(ParallelTextTest, GivesTheInputsThatAreAskedFor) {
  AddPair(Sources(0, 20), Targets(0, 20));
  const auto source = Open();
  const std::vector<std::string> targets = {"targets"};
  const HostBatch all = *source->Train(1, MicroBatchId(0), names_);
  const HostBatch one = *source->Train(1, MicroBatchId(0), targets);
  ASSERT_EQ(one.arrays.size(), 1u);
  EXPECT_EQ(one.arrays[0], all.arrays[3]);
  EXPECT_EQ(one.lengths, all.lengths) << "another stage finds the same sizes";

  spec_.data = data_;
  const auto alone = OpenSource(spec_, PairNetwork(form_), targets, *roots_);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ((*alone)->Train(1, MicroBatchId(0), targets)->arrays[0], all.arrays[3]);
  EXPECT_EQ((*alone)->manifest(), source->manifest());
}

TEST_F(ParallelTextTest, PlainGzipAndTabsAreTheSameSamples) {
  const std::string sources = Sources(0, 60), targets = Targets(0, 60);
  AddPair(sources, targets);
  const auto plain = Open();
  const std::vector<PairRow> rows = Train(*plain, 3);
  folder_.Write("sources0", Gzipped(sources));
  folder_.Write("targets0", Gzipped(targets));
  const auto packed = Open();
  EXPECT_EQ(Train(*packed, 3), rows);
  EXPECT_NE(packed->manifest().sha256, plain->manifest().sha256);

  std::string pairs;
  for (size_t s = 0, t = 0; s < sources.size();) {
    const size_t s_end = sources.find('\n', s), t_end = targets.find('\n', t);
    absl::StrAppend(&pairs, sources.substr(s, s_end - s), "\t", targets.substr(t, t_end - t),
                    "\r\n");
    s = s_end + 1;
    t = t_end + 1;
  }
  folder_.Write("sources0", pairs);
  data_.targets.clear();
  EXPECT_EQ(Train(*Open(), 3), rows);
}

TEST_F(ParallelTextTest, VisitsEveryPairOnceAnEpochButForTheRest) {
  AddPair(Sources(0, 50), Targets(0, 50));
  AddPair(Sources(100, 30), Targets(100, 30), nullptr);
  const auto source = Open();
  // 49 and 29 train: 13 mini-batches of 6 are all of them.
  EXPECT_EQ(source->manifest().train_samples, 78);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::string> seen;
    for (int64_t i = 0; i < 13; ++i) {
      for (const PairRow& row : Train(*source, static_cast<uint64_t>(epoch * 13 + i))) {
        EXPECT_TRUE(seen.insert(row.Source()).second) << row.Source();
        // Line i of one file with line i of the other.
        EXPECT_EQ(NumberOf(row), std::stoi(row.Target()));
        EXPECT_EQ(row.source_length, std::ssize(row.source));
        EXPECT_EQ(row.tokens.size(), row.targets.size());
      }
    }
    EXPECT_EQ(seen.size(), 78u);
  }
}

// What a resumed stage asks first is what an undisturbed one asked at that step.
TEST_F(ParallelTextTest, IsAPureFunctionOfTheStep) {
  AddPair(Sources(0, 60), Targets(0, 60));
  const auto running = Open(), resumed = Open();
  std::vector<PairRow> rows;
  for (uint64_t step = 0; step <= 17; ++step) rows = Train(*running, step);
  EXPECT_EQ(Train(*resumed, 17), rows);
  for (uint64_t step = 18; step < 40; ++step) Train(*running, step);
  EXPECT_EQ(Train(*running, 17), rows);
  spec_.seed = 43;
  EXPECT_NE(Train(*Open(), 17), rows);
}

TEST_F(ParallelTextTest, MicroBatchesCutTheSameMiniBatch) {
  AddPair(Sources(0, 100), Targets(0, 100));
  std::vector<PairRow> whole;
  std::vector<PairRow> held_out;
  for (const int64_t micro_batches : {1, 2, 4, 6}) {
    spec_.training.micro_batches = micro_batches;
    const auto source = Open();
    if (whole.empty()) whole = Train(*source, 11);
    if (held_out.empty()) held_out = Evaluate(*source);
    EXPECT_EQ(Train(*source, 11), whole) << micro_batches;
    EXPECT_EQ(Evaluate(*source), held_out) << micro_batches;
  }
}

// So the arrays of a mini-batch have one size, of which a job has no more than buckets.
TEST_F(ParallelTextTest, AMiniBatchHasTheLengthsOfABucket) {
  AddPair(Sources(0, 300), Targets(0, 300));
  data_.buckets = 4;
  const auto source = Open();
  std::set<Lengths> all;
  for (uint64_t step = 0; step < 60; ++step) {
    std::set<Lengths> of_step;
    int32_t longest = 0;
    for (int i = 0; i < 2; ++i) {
      const HostBatch batch = *source->Train(step, MicroBatchId(i), names_);
      of_step.insert(batch.lengths);
      const int64_t length = batch.lengths.of(Length::kSource);
      EXPECT_EQ(std::ssize(Ids(batch.arrays[0])), batch.samples * length);
      EXPECT_EQ(std::ssize(Ids(batch.arrays[3])),
                batch.samples * batch.lengths.of(Length::kTarget));
      for (const PairRow& row : RowsOf(batch)) longest = std::max(longest, row.source_length);
      EXPECT_LE(longest, length);
    }
    EXPECT_EQ(of_step.size(), 1u) << step;
    all.merge(of_step);
  }
  EXPECT_EQ(all.size(), 4u);
  EXPECT_THAT(source->Found(), HasSubstr("294 pairs, 4 buckets, "));
}

// Both sides count, whichever inputs a stage reads: the last one tells of them all.
TEST_F(ParallelTextTest, CountsThePaddingOfBothSides) {
  AddPair(Sources(0, 300), Targets(0, 300));
  const auto source = Open();
  const std::vector<std::string> targets = {"targets"};
  int64_t padded = 0;
  for (uint64_t step = 0; step < 20; ++step) {
    for (int i = 0; i < 2; ++i) {
      const HostBatch batch = *source->Train(step, MicroBatchId(i), names_);
      PaddingCount want{.positions = batch.samples * (batch.lengths.of(Length::kSource) +
                                                      batch.lengths.of(Length::kTarget))};
      want.padded = want.positions;
      for (const PairRow& row : RowsOf(batch)) {
        want.padded -= std::ssize(row.source) + std::ssize(row.targets);
      }
      EXPECT_EQ(batch.padding, want);
      EXPECT_EQ(source->Train(step, MicroBatchId(i), targets)->padding, want);
      padded += want.padded;
    }
  }
  EXPECT_GT(padded, 0);
}

TEST_F(ParallelTextTest, MoreBucketsHaveLessPadding) {
  AddPair(Sources(0, 2000), Targets(0, 2000));
  const auto padding = [this](int64_t buckets) {
    data_.buckets = buckets;
    const std::string found = Open()->Found();
    const size_t end = found.find(" % padding"), begin = found.rfind(' ', end - 1);
    return std::stoi(found.substr(begin, end - begin));
  };
  const int one = padding(1), eight = padding(8);
  EXPECT_LT(eight, one);
  form_.named = false;
  EXPECT_GT(padding(8), one) << "the network's whole extents";
}

TEST_F(ParallelTextTest, ANetworkWithoutNamedLengthsGetsItsExtents) {
  AddPair(Sources(0, 60), Targets(0, 60));
  const auto bound = Open();
  form_.named = false;
  form_.source = 50;
  const auto whole = Open();
  const HostBatch batch = *whole->Train(5, MicroBatchId(0), names_);
  EXPECT_EQ(batch.lengths, Lengths());
  EXPECT_EQ(batch.padding, PaddingCount()) << "a job with fixed lengths has no share of padding";
  EXPECT_EQ(std::ssize(Ids(batch.arrays[0])), batch.samples * 50);
  EXPECT_EQ(std::ssize(Ids(batch.arrays[2])), batch.samples * 40);
  EXPECT_EQ(Train(*whole, 5), Train(*bound, 5)) << "the same samples, with more padding";
}

TEST_F(ParallelTextTest, HoldsOutTheLastLinesOfEachFileInTurns) {
  AddPair(Sources(0, 150), Targets(0, 150));
  AddPair(Sources(1000, 20), Targets(1000, 20));
  const auto source = Open();
  EXPECT_EQ(source->manifest().evaluation_samples, 4);
  EXPECT_EQ(source->manifest().train_samples, 147 + 19);
  std::vector<int> numbers;
  for (const PairRow& row : Evaluate(*source)) numbers.push_back(NumberOf(row));
  EXPECT_THAT(numbers, UnorderedElementsAre(147, 148, 149, 1019));

  spec_.training.batch_size = 2;
  spec_.evaluation.batches = 1;
  numbers.clear();
  for (const PairRow& row : Evaluate(*Open())) numbers.push_back(NumberOf(row));
  EXPECT_THAT(numbers, UnorderedElementsAre(147, 1019)) << "both languages";
}

TEST_F(ParallelTextTest, EvaluatesTestFilesByLength) {
  AddPair(Sources(0, 100), Targets(0, 100));
  AddTests("ccc\na\nbb\nee\ndddd\n", "c\na\nb\ne\nd\n");
  spec_.training.batch_size = 3;
  const auto source = Open();
  EXPECT_EQ(source->manifest().train_samples, 100) << "nothing is held out";
  EXPECT_EQ(source->evaluation_batches(), 2);
  EXPECT_THAT(SourcesOf(Evaluate(*source)), ElementsAre("a", "bb", "ee", "ccc", "dddd"));
  // 3 as 2 + 1, then 2 as 2 + 0; all micro-batches of a mini-batch have the same lengths.
  for (uint64_t batch = 0; batch < 2; ++batch) {
    const HostBatch first = *source->Evaluation(batch, MicroBatchId(0), names_);
    const HostBatch second = *source->Evaluation(batch, MicroBatchId(1), names_);
    EXPECT_EQ(first.samples, 2);
    EXPECT_EQ(second.samples, batch == 0 ? 1 : 0);
    EXPECT_EQ(second.lengths, first.lengths);
  }
}

TEST_F(ParallelTextTest, PairsBeyondTheContextsAreLeftOutAndCounted) {
  const std::string longest(37, 'x'), longer(38, 'x');  // with space, mark of the end and 1 letter
  AddPair(absl::StrCat("a\nb", longest, "\nc", longer, "\nd\n\nf\n"),
          absl::StrCat("a\nb\nc\nd", longer, "\n \nf\n"));
  form_.source = form_.target = 40;
  const auto source = Open();
  std::set<std::string> seen;
  for (uint64_t step = 0; step < 5; ++step) {
    for (const PairRow& row : Train(*source, step)) seen.insert(row.Source());
  }
  EXPECT_THAT(seen, UnorderedElementsAre("a", "b" + longest));
  EXPECT_THAT(source->notes(),
              ElementsAre("data.parallel_text: of 6 pairs 2 to train on and 0 to evaluate with are "
                          "longer than the network's contexts and are left out",
                          "data.parallel_text: of 6 pairs 1 have no words on both sides and are "
                          "left out"));
  form_.source = form_.target = 41;
  EXPECT_THAT(Open()->notes(), ElementsAre(HasSubstr("no words")));
}

TEST_F(ParallelTextTest, HeldOutPairsBeyondTheContextsAreLeftOutToo) {
  AddPair("a\n", "a\n");
  AddTests(absl::StrCat("b\nc", std::string(60, 'x'), "\n"), "b\nc\n");
  const auto source = Open();
  EXPECT_THAT(SourcesOf(Evaluate(*source)), ElementsAre("b"));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("0 to train on and 1 to evaluate with")));
}

TEST_F(ParallelTextTest, SamplingTakesASmallLanguageMoreOften) {
  AddPair(Sources(0, 182), Targets(0, 182), "<2de>");
  AddPair(Sources(1000, 21), Targets(1000, 21), "<2fr>");
  // 179 and 20 train.
  const auto share = [this](double sampling) {
    data_.sampling = sampling;
    const auto source = Open();
    int64_t small = 0, all = 0;
    for (uint64_t step = 0; step < 33 * 5; ++step) {
      for (const PairRow& row : Train(*source, step)) {
        EXPECT_EQ(row.source.front(), NumberOf(row) < 1000 ? kPairDe : kPairFr);
        small += row.source.front() == kPairFr ? 1 : 0;
        ++all;
      }
    }
    return static_cast<double>(small) / static_cast<double>(all);
  };
  EXPECT_NEAR(share(1), 0.10, 0.01);
  EXPECT_NEAR(share(0.5), 0.25, 0.01);
  EXPECT_NEAR(share(0), 0.50, 0.01);
}

// Stages compare it, and each load of the job.
TEST_F(ParallelTextTest, TheDigestIsOverAllThatMakesTheSamples) {
  AddPair(Sources(0, 60), Targets(0, 60), "<2de>");
  AddTests(Sources(70, 10), Targets(70, 10));
  data_.test_tags = {"<2de>"};
  const std::string first = Open()->manifest().sha256;
  EXPECT_EQ(Open()->manifest().sha256, first);
  std::set<std::string> digests = {first};
  const auto expect_another = [&](const char* what) {
    EXPECT_TRUE(digests.insert(Open()->manifest().sha256).second) << what;
  };
  data_.tags = {"<2fr>"};
  expect_another("tag");
  data_.buckets = 3;
  expect_another("buckets");
  for (const char* const file : {"sources0", "targets0", "test_sources0", "test_targets0"}) {
    const bool source = std::string(file).find("sources") != std::string::npos;
    const bool test = std::string(file).find("test") != std::string::npos;
    const int first_line = test ? 70 : 0, count = test ? 10 : 60;
    std::string text = source ? Sources(first_line, count) : Targets(first_line, count);
    text[0] = 'q';
    folder_.Write(file, text);
    expect_another(file);
  }
  std::vector<Piece> pieces = PairPieces();
  pieces.back().text = "<2cs>";
  data_.tags = {"<2de>"};
  expect_another("the first tag with other files");
  folder_.Write("tokenizer", ModelFileText(pieces));
  expect_another("tokenizer");
}

TEST_F(ParallelTextTest, TellsThatItAdvancesWhileItReads) {
  AddPair(Sources(0, 500), Targets(0, 500));
  ProgressCounter counter;
  const ProgressScope scope(&counter);
  Open();
  EXPECT_GT(counter.count(), 500u);
}

// A survey reads the beginning of large files; here all of small ones.
TEST_F(ParallelTextTest, ASurveySaysWhatThereIs) {
  AddPair(Sources(0, 100), Targets(0, 100));
  const auto source = TryOpen(SourceLook::kSurvey);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Found(),
              testing::MatchesRegex("98 pairs, 8 buckets, [0-9]+ % padding, 2 held out"));
  EXPECT_THAT((*source)->notes(), IsEmpty());
  EXPECT_THAT(Cached(), IsEmpty()) << "it keeps nothing";
}

}  // namespace
}  // namespace stagecoach
