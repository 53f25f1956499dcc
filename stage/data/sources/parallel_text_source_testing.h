// For tests of the source of parallel text: a job on files in a folder, and its mini-batches as
// words again.
#ifndef STAGECOACH_STAGE_DATA_SOURCES_PARALLEL_TEXT_SOURCE_TESTING_H_
#define STAGECOACH_STAGE_DATA_SOURCES_PARALLEL_TEXT_SOURCE_TESTING_H_

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/gpt.h"
#include "plan/data/parallel_text.h"
#include "stage/data/open_source.h"
#include "stage/data/parallel/pair_network_testing.h"
#include "stage/files/data_roots.h"

namespace stagecoach {

// A sample of a mini-batch without its padding, letters as text.
struct PairRow {
  std::vector<int32_t> source, tokens, targets;
  int32_t source_length = 0;
  std::string Source() const { return Letters(source); }
  std::string Target() const { return Letters(targets); }
  friend bool operator==(const PairRow&, const PairRow&) = default;

 private:
  static std::string Letters(const std::vector<int32_t>& ids) {
    std::string text;
    for (const int32_t id : ids) {
      if (id > kPairSpace && id < kPairDe) text += static_cast<char>('!' + id - 5);
    }
    return text;
  }
};

class ParallelTextTest : public testing::Test {
 protected:
  ParallelTextTest() {
    spec_.name = "job";
    spec_.seed = 42;
    spec_.network = GptSpec{};
    spec_.training.batch_size = 6;
    spec_.training.micro_batches = 2;
    spec_.evaluation = {.every_steps = 1, .batches = 1000};
    data_.tokenizer = folder_.Write("tokenizer", ModelFileText(PairPieces()));
  }

  // Lines of different lengths: source i is "i", "ix", "ixx" and so on, target i "i" and some y's.
  static std::string Sources(int first, int count) { return Lines(first, count, 'x', 17); }
  static std::string Targets(int first, int count) { return Lines(first, count, 'y', 23); }
  static std::string Lines(int first, int count, char letter, int step) {
    std::string text;
    for (int i = first; i < first + count; ++i) {
      absl::StrAppend(&text, i, std::string(static_cast<size_t>(i * step % 29), letter), "\n");
    }
    return text;
  }
  // A pair of files for the job.
  void AddPair(const std::string& sources, const std::string& targets, const char* tag = nullptr) {
    const size_t i = data_.sources.size();
    data_.sources.push_back(folder_.Write(absl::StrCat("sources", i), sources));
    data_.targets.push_back(folder_.Write(absl::StrCat("targets", i), targets));
    if (tag != nullptr) data_.tags.emplace_back(tag);
  }
  void AddTests(const std::string& sources, const std::string& targets) {
    const size_t i = data_.test_sources.size();
    data_.test_sources.push_back(folder_.Write(absl::StrCat("test_sources", i), sources));
    data_.test_targets.push_back(folder_.Write(absl::StrCat("test_targets", i), targets));
  }

  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpen(SourceLook look = SourceLook::kTrain) {
    spec_.data = data_;
    return OpenSource(spec_, PairNetwork(form_), names_, *roots_, look);
  }
  std::unique_ptr<BatchSource> Open() {
    absl::StatusOr<std::unique_ptr<BatchSource>> source = TryOpen();
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }

  static std::vector<int32_t> Ids(const std::vector<std::byte>& bytes) {
    std::vector<int32_t> values(bytes.size() / sizeof(int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // Rows of all four inputs; checks that all behind them is padding.
  std::vector<PairRow> RowsOf(const HostBatch& batch) const {
    std::vector<PairRow> rows(static_cast<size_t>(batch.samples));
    if (batch.samples == 0) return rows;
    const std::vector<int32_t> source = Ids(batch.arrays.at(0)), length = Ids(batch.arrays.at(1)),
                               tokens = Ids(batch.arrays.at(2)), targets = Ids(batch.arrays.at(3));
    EXPECT_EQ(std::ssize(length), batch.samples);
    const auto row = [&batch](const std::vector<int32_t>& ids, size_t i) {
      const size_t extent = ids.size() / static_cast<size_t>(batch.samples);
      std::vector<int32_t> part(ids.begin() + static_cast<int64_t>(i * extent),
                                ids.begin() + static_cast<int64_t>((i + 1) * extent));
      while (!part.empty() && part.back() == kPairPad) part.pop_back();
      return part;
    };
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = {row(source, i), row(tokens, i), row(targets, i), length[i]};
    }
    return rows;
  }
  std::vector<PairRow> Train(const BatchSource& source, uint64_t step) const {
    std::vector<PairRow> rows;
    for (int i = 0; i < spec_.training.micro_batches; ++i) {
      for (PairRow& row : RowsOf(*source.Train(step, MicroBatchId(i), names_))) {
        rows.push_back(std::move(row));
      }
    }
    return rows;
  }
  std::vector<PairRow> Evaluate(const BatchSource& source) const {
    std::vector<PairRow> rows;
    for (int64_t b = 0; b < source.evaluation_batches(); ++b) {
      for (int i = 0; i < spec_.training.micro_batches; ++i) {
        const auto batch = source.Evaluation(static_cast<uint64_t>(b), MicroBatchId(i), names_);
        for (PairRow& row : RowsOf(*batch)) rows.push_back(std::move(row));
      }
    }
    return rows;
  }
  // Of a pair of Sources and Targets.
  static int NumberOf(const PairRow& row) { return std::stoi(row.Source()); }
  static std::vector<std::string> SourcesOf(const std::vector<PairRow>& rows) {
    std::vector<std::string> texts;
    for (const PairRow& row : rows) texts.push_back(row.Source());
    return texts;
  }

  // Paths of the kept files of ids.
  std::vector<std::string> Cached() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(cache_)) {
      paths.push_back(entry.path().string());
    }
    return paths;
  }

  const TemporaryFolder folder_;
  const std::string cache_ = folder_.MakeFolder("cache");
  const std::unique_ptr<DataRoots> roots_ = DataRoots::Everything({}, cache_);
  const std::vector<std::string> names_ = {"source", "source_length", "tokens", "targets"};
  ParallelTextData data_;
  PairNetworkForm form_;
  JobSpec spec_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SOURCES_PARALLEL_TEXT_SOURCE_TESTING_H_
