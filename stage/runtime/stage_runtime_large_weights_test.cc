// A stage with a few layers of a Llama of 7 B weights, in a folder as `stagecoach import` takes it:
// which bytes of the folder it reads, and what it keeps. The job is the one that import's comment
// proposes for large models: adapters beside a base in bfloat16.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "checkpoint/testing/sparse_shards.h"
#include "gtest/gtest.h"
#include "network/names/weight_names.h"
#include "network/network_kinds.h"
#include "network/zoo/llama.h"
#include "plan/plan.h"
#include "stage/files/data_roots.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

constexpr int kLargeStages = 32;
constexpr int64_t kLargeStageBytes = int64_t{2} << 30;

// Notes which bytes of each file are read. Of one thread.
class NotedFiles final : public ReadableFiles {
 public:
  using Reads = std::map<std::string, std::vector<FileRange>>;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files_->Open(path));
    return std::make_unique<Noted>(std::move(file), &reads_[path]);
  }
  absl::Status Look(const std::string& path) override { return files_->Look(path); }
  Reads TakeReads() { return std::exchange(reads_, {}); }

 private:
  class Noted final : public ReadableFile {
   public:
    Noted(std::unique_ptr<ReadableFile> file, std::vector<FileRange>* reads)
        : file_(std::move(file)), reads_(reads) {}
    int64_t size() const override { return file_->size(); }
    absl::Status Read(int64_t offset, std::span<std::byte> target) override {
      reads_->push_back({offset, offset + std::ssize(target)});
      return file_->Read(offset, target);
    }

   private:
    const std::unique_ptr<ReadableFile> file_;
    std::vector<FileRange>* const reads_;
  };

  const std::unique_ptr<DataRoots> files_ = DataRoots::Everything();
  Reads reads_;
};

// In order, those that touch as one. Bytes that are read twice leave two ranges that overlap.
std::vector<FileRange> Joined(std::vector<FileRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<FileRange> joined;
  for (const FileRange& range : ranges) {
    if (!joined.empty() && joined.back().end == range.begin) {
      joined.back().end = range.end;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

class LargeWeightsTest : public testing::Test {
 protected:
  LargeWeightsTest() : fleet_(OptionsOf()), network_(fleet_.network()) {}

  RuntimeFleet::Options OptionsOf() {
    RuntimeFleet::Options options{.stages = 1};
    options.precision = Precision::kBfloat16;
    options.weight_files = &files_;
    options.change = [this](const TemporaryFolder&, JobSpec* spec) {
      spec->network = LlamaSpec{.layers = 32,
                                .width = 4096,
                                .heads = 32,
                                .hidden = 11008,
                                .context = 64,
                                .vocabulary = 32000};
      shards_ = WriteSparseShards(folder_, DType::kBF16, Tensors(spec->network), /*shards=*/3);
      spec->initialize = {.from = folder_.path(), .names = std::string(kHuggingFaceNames)};
      spec->training.lora = {.rank = 8, .alpha = 16, .targets = {"query", "value"}};
      spec->pipeline.stages = kLargeStages;
    };
    return options;
  }

  static std::vector<std::pair<std::string, Shape>> Tensors(const NetworkSpec& spec) {
    std::vector<std::pair<std::string, Shape>> tensors;
    const WeightTable table = *WeightNames(*ExpandNetwork(spec), kHuggingFaceNames);
    for (const WeightName& name : table.names) {
      for (const WeightPart& part : name.parts) tensors.emplace_back(part.tensor, part.shape);
    }
    return tensors;
  }

  // Where the folder has the tensors of layers [first, last).
  NotedFiles::Reads PlacesOf(int first, int last) const {
    NotedFiles::Reads places;
    const WeightTable table = *WeightNames(*network_, kHuggingFaceNames);
    for (const WeightName& name : table.names) {
      const bool here = absl::StrCat(absl::Dec(first, absl::kZeroPad4)) <= name.ours.substr(6, 4) &&
                        name.ours.substr(6, 4) < absl::StrCat(absl::Dec(last, absl::kZeroPad4));
      if (!here) continue;
      for (const WeightPart& part : name.parts) {
        const auto& [path, range] = shards_.tensors.at(part.tensor);
        places[path].push_back(range);
      }
    }
    for (auto& [path, ranges] : places) ranges = Joined(std::move(ranges));
    return places;
  }

  TemporaryFolder folder_;
  NotedFiles files_;
  SparseShards shards_;
  RuntimeFleet fleet_;
  const std::shared_ptr<const Network> network_;
};

TEST_F(LargeWeightsTest, AStageReadsTheRangesOfItsTensorsAndKeepsWhatThePlanSays) {
  if (kSanitized) GTEST_SKIP() << "a cell has 0.4 GB; other tests run the same code";
  EXPECT_GT(shards_.bytes(), int64_t{12} << 30);
  const int layers = static_cast<int>(network_->layers.size());
  const absl::StatusOr<Plan> plan = MakePlan(fleet_.spec(), *network_, kLargeStages,
                                             {.stage_memory_limit_bytes = kLargeStageBytes}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(files_.TakeReads().size(), 0u) << "a plan reads no weights";
  for (const int k : {10, 21}) {  // of a block each, on different shards
    SCOPED_TRACE(absl::StrCat("stage ", k));
    LoadCommand command = fleet_.LoadOf(k, /*generation=*/static_cast<uint64_t>(1 + k),
                                        /*step=*/0, "", kLargeStages);
    command.partition = plan->partition;
    LoadAnswer answer;
    fleet_.runtime(0).Load(std::move(command), answer.callback());
    const absl::StatusOr<LoadResult> loaded = answer.Get();
    ASSERT_TRUE(loaded.ok()) << loaded.status();

    const NotedFiles::Reads wanted =
        PlacesOf(plan->partition.first(k), plan->partition.last(k, layers));
    int64_t tensors = 0, headers = 0;
    NotedFiles::Reads reads = files_.TakeReads();
    for (const auto& [path, header] : shards_.headers) {
      std::vector<FileRange> ranges;
      for (const FileRange& read : reads.at(path)) {
        if (read.end <= header) {
          headers += read.bytes();
        } else {
          ranges.push_back(read);
          tensors += read.bytes();
        }
      }
      const auto here = wanted.find(path);
      EXPECT_EQ(Joined(ranges), here == wanted.end() ? std::vector<FileRange>() : here->second)
          << path;
    }
    EXPECT_LT(headers, 1 << 20);
    EXPECT_LT(tensors, shards_.bytes() / 20) << "of one stage of " << kLargeStages;
    RecordProperty(absl::StrCat("stage_", k), absl::StrCat(tensors, " and ", headers, " bytes"));

    const StageMemory& planned = plan->stages[static_cast<size_t>(k)].memory;
    EXPECT_EQ(loaded->memory.parameters, planned.parameters);
    EXPECT_EQ(loaded->memory.gradients, planned.gradients);
    EXPECT_EQ(loaded->memory.optimizer, planned.optimizer);
    EXPECT_LE(planned.total(), kLargeStageBytes);
  }
}

}  // namespace
}  // namespace stagecoach
