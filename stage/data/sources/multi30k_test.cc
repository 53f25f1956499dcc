// Real data, if it is beside the source tree: 29,000 captions in two languages from English.
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "stage/data/parallel/pair_set.h"
#include "stage/data/sources/parallel_text_source_testing.h"
#include "stage/files/any_file_testing.h"
#include "stage/tokens/library/sentencepiece_library.h"

namespace stagecoach {
namespace {

constexpr int64_t kVocabulary = 2000;

class Multi30k : public ParallelTextTest {
 protected:
  static std::string PathOf(const std::string& name) {
    return absl::StrCat(STAGECOACH_SOURCE_DIR "/../shared/data/multi30k/", name, ".gz");
  }
  // The first lines of each of these files.
  static std::vector<std::string> LinesOf(const std::vector<std::string>& names, size_t count) {
    std::vector<std::string> lines;
    for (const std::string& name : names) {
      const auto file = *LineFile::Open(AnyFile(), "data.x", PathOf(name), SentenceLines());
      for (size_t i = 0; i < count; ++i) lines.emplace_back(**file->Next());
    }
    return lines;
  }
  void TrainTokenizer() {
    const std::vector<std::string> lines = LinesOf({"train.en", "train.de", "train.fr"}, 2000);
    size_t next = 0;
    const auto next_line = [&](std::string* line) {
      if (next == lines.size()) return false;
      *line = lines[next++];
      return true;
    };
    std::string model;
    const std::string error = TrainByLibrary({{"vocab_size", absl::StrCat(kVocabulary)},
                                              {"model_type", "bpe"},
                                              {"pad_id", "0"},
                                              {"unk_id", "1"},
                                              {"bos_id", "2"},
                                              {"eos_id", "3"},
                                              {"user_defined_symbols", "<2de>,<2fr>"},
                                              {"minloglevel", "2"}},
                                             next_line, &model);
    ASSERT_EQ(error, "");
    data_.tokenizer = folder_.Write("tokenizer", model);
  }
};

TEST_F(Multi30k, IsReadAsOneMiniBatchAfterTheOther) {
  if (!std::filesystem::exists(PathOf("train.en"))) {
    GTEST_SKIP() << PathOf("train.en") << " is not here";
  }
  TrainTokenizer();
  data_.sources = {PathOf("train.en"), PathOf("train.en")};
  data_.targets = {PathOf("train.de"), PathOf("train.fr")};
  data_.tags = {"<2de>", "<2fr>"};
  data_.test_sources = {PathOf("val.en"), PathOf("val.en")};
  data_.test_targets = {PathOf("val.de"), PathOf("val.fr")};
  data_.test_tags = data_.tags;
  form_ = {.source = 64, .target = 64, .vocabulary = kVocabulary};
  spec_.training.batch_size = 128;
  spec_.training.micro_batches = 4;
  const auto source = Open();
  ASSERT_NE(source, nullptr);
  // Of 58,000 and 2,028.
  EXPECT_GT(source->manifest().train_samples, 57'900);
  EXPECT_GT(source->manifest().evaluation_samples, 2000);
  EXPECT_THAT(source->Found(), testing::HasSubstr(" pairs, 8 buckets, "));
  std::set<Lengths> all;
  int64_t cells = 0, tokens = 0;
  for (uint64_t step = 0; step < 100; ++step) {
    for (int i = 0; i < 4; ++i) {
      const HostBatch batch = *source->Train(step, MicroBatchId(i), names_);
      all.insert(batch.lengths);
      cells += batch.samples * batch.lengths.of(Length::kSource);
      for (const int32_t length : Ids(batch.arrays[1])) tokens += length;
    }
  }
  EXPECT_LE(all.size(), 8u);
  EXPECT_LT(static_cast<double>(cells - tokens) / static_cast<double>(cells), 0.35);
}

}  // namespace
}  // namespace stagecoach
