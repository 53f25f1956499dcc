// Stage runtimes of a job with adapters: the base comes from the file of weights at each load, and
// checkpoints hold the rest.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/sanitized.h"
#include "checkpoint/store/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/llama.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

constexpr char kBaseFolder[] = "/exports/first";
constexpr char kBaseFile[] = "/exports/first/model.safetensors";

std::map<std::string, std::string> StoredIn(const Manifest& manifest) {
  std::map<std::string, std::string> tensors;
  for (const ShardInfo& shard : manifest.shards) {
    for (const ShardTensor& tensor : shard.tensors) tensors[tensor.entry.name] = tensor.sha256;
  }
  return tensors;
}

std::vector<std::string> NamesOf(const std::map<std::string, std::string>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, sha256] : tensors) names.push_back(name);
  return names;
}

class RuntimeLoraTest : public testing::Test {
 protected:
  static std::unique_ptr<RuntimeFleet> Fleet(int stages, uint64_t seed, bool tied) {
    auto fleet = std::make_unique<RuntimeFleet>(RuntimeFleet::Options{.stages = stages});
    fleet->spec().seed = seed;
    fleet->spec().network = LlamaSpec{.layers = 2,
                                      .width = 8,
                                      .heads = 4,
                                      .key_heads = 2,
                                      .hidden = 6,
                                      .context = 4,
                                      .vocabulary = 8,
                                      .tied_embeddings = tied};
    return fleet;
  }

  // A network that has trained for a step, as a file.
  static std::string Base(bool tied) {
    const auto fleet = Fleet(1, 9, tied);
    CHECK_OK(fleet->LoadAll(1));
    CHECK_OK(fleet->TrainSteps(1, 0, 1).status());
    const std::string folder = "/a/step-000000000001";
    const auto manifest = fleet->Checkpoint(1, 1, folder);
    CHECK_OK(manifest.status());
    CHECK_OK(ExportWeights(fleet->file_system(), {"a", 1, folder}, *manifest, kBaseFolder, "{}")
                 .status());
    return fleet->file_system().Contents(kBaseFile);
  }

  static std::unique_ptr<RuntimeFleet> Adapted(int stages, const std::string& base, bool tied,
                                               const LoraSpec& lora) {
    auto fleet = Fleet(stages, 5, tied);
    CHECK_OK(fleet->file_system().MakeFolders(kBaseFolder));
    CHECK_OK(fleet->file_system().Create(kBaseFile).status());
    fleet->file_system().SetContents(kBaseFile, base);
    fleet->spec().initialize.from = kBaseFolder;
    fleet->spec().training.lora = lora;
    return fleet;
  }

  // Of so many bytes of a tensor.
  static int64_t Allocated(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  static double Evaluation(RuntimeFleet& fleet, int generation, uint64_t step) {
    const auto reports = fleet.RunAll(
        {.fence = RuntimeFleet::FenceOf(generation, step), .work = WorkKind::kEvaluate});
    CHECK_OK(reports.status());
    return reports->back().loss_sum;
  }
};

const LoraSpec kLora = {
    .rank = 2, .alpha = 4, .dropout = 0.25, .targets = {"query", "value", "up"}};

// B begins with zeros.
TEST_F(RuntimeLoraTest, TheNetworkBeginsAsItsBase) {
  for (const bool tied : {false, true}) {
    const std::string base = Base(tied);
    const auto whole = Adapted(1, base, tied, {});
    ASSERT_TRUE(whole->LoadAll(1).ok());
    const double expected = Evaluation(*whole, 1, 0);
    for (const int stages : {1, 2, 4}) {
      if (kSanitized && stages != 2) continue;  // numbers are the release build's to compare
      const auto fleet = Adapted(stages, base, tied, kLora);
      const absl::Status loaded = fleet->LoadAll(1);
      ASSERT_TRUE(loaded.ok()) << loaded;
      EXPECT_EQ(Evaluation(*fleet, 1, 0), expected) << stages;
    }
  }
}

TEST_F(RuntimeLoraTest, EveryPipelineTrainsAlikeAndGoesOnFromCheckpointsOfAdaptersAlone) {
  for (const bool tied : {false, true}) {
    const std::string base = Base(tied);
    std::vector<double> losses;
    std::map<std::string, std::string> after;
    for (const int stages : {1, 2, 6}) {
      if (kSanitized && stages > 2) continue;
      const auto fleet = Adapted(stages, base, tied, kLora);
      ASSERT_TRUE(fleet->LoadAll(1).ok());
      const auto first = fleet->TrainSteps(1, 0, 2);
      ASSERT_TRUE(first.ok()) << first.status();
      const std::string folder = "/a/step-000000000002";
      const auto manifest = fleet->Checkpoint(1, 2, folder);
      ASSERT_TRUE(manifest.ok()) << manifest.status();
      EXPECT_THAT(NamesOf(StoredIn(*manifest)), Each(HasSubstr(".lora_")));
      // Another process: what it has must come from the file and the checkpoint.
      ASSERT_TRUE(fleet->LoadAll(2, 2, folder).ok());
      const auto second = fleet->TrainSteps(2, 2, 4);
      ASSERT_TRUE(second.ok()) << second.status();
      const auto last = fleet->Checkpoint(2, 4, "/a/step-000000000004");
      ASSERT_TRUE(last.ok()) << last.status();
      std::vector<double> all = *first;
      all.insert(all.end(), second->begin(), second->end());
      if (losses.empty()) {
        losses = all;
        after = StoredIn(*last);
        EXPECT_NE(after, StoredIn(*manifest));
      }
      EXPECT_EQ(all, losses) << stages;
      EXPECT_EQ(StoredIn(*last), after) << stages;
    }
  }
}

// The base has no float32 numbers beside those that operations read, and no gradients.
TEST_F(RuntimeLoraTest, TheBaseTakesTheBytesThatOperationsRead) {
  for (const bool tied : {false, true}) {
    const std::string base = Base(tied);
    std::vector<double> losses;
    for (const int stages : {1, 2}) {
      const auto fleet = Adapted(stages, base, tied, kLora);
      fleet->spec().precision = Precision::kBfloat16;
      const Network network = ExpandJob(fleet->spec()).value();
      int64_t least = 0, trained = 0;  // bytes
      for (const NetworkLayer& layer : network.layers) {
        for (size_t i = 0; i < layer.parameters.size(); ++i) {
          const ParameterSpec& parameter = layer.parameters[i];
          if (parameter.tied()) continue;
          const ValueType& type = layer.lists->value(layer.lists->parameters[i]).type;
          const int64_t read = DTypeSize(ElementDType(type.element, DType::kBF16));
          const int64_t elements = parameter.shape.elements();
          least += parameter.trained ? Allocated(4 * elements) + Allocated(2 * elements)
                                     : Allocated(read * elements);
          trained += parameter.trained ? Allocated(4 * elements) : 0;
        }
      }
      int64_t parameters = 0, gradients = 0;
      for (int stage = 0; stage < stages; ++stage) {
        LoadAnswer answer;
        fleet->runtime(stage).Load(fleet->LoadOf(stage, 1, 0), answer.callback());
        const auto loaded = answer.Get();
        ASSERT_TRUE(loaded.ok()) << loaded.status();
        parameters += loaded->memory.parameters;
        gradients += loaded->memory.gradients;
      }
      const int64_t copy = tied && stages == 2 ? 8 * 8 * 2 : 0;
      EXPECT_EQ(parameters, least + copy) << tied << stages;
      EXPECT_EQ(gradients, trained);
      ASSERT_TRUE(fleet->LoadAll(2).ok());
      const auto steps = fleet->TrainSteps(2, 0, 2);
      ASSERT_TRUE(steps.ok()) << steps.status();
      if (losses.empty()) losses = *steps;
      EXPECT_EQ(*steps, losses);
    }
  }
}

// Without a pause the bits are the same.
TEST_F(RuntimeLoraTest, ARunWithoutAPauseHasTheSameBits) {
  const std::string base = Base(false);
  const auto pausing = Adapted(2, base, false, kLora), through = Adapted(1, base, false, kLora);
  ASSERT_TRUE(pausing->LoadAll(1).ok());
  ASSERT_TRUE(pausing->TrainSteps(1, 0, 2).ok());
  ASSERT_TRUE(pausing->Checkpoint(1, 2, "/a/two").ok());
  ASSERT_TRUE(pausing->LoadAll(2, 2, "/a/two").ok());
  ASSERT_TRUE(pausing->TrainSteps(2, 2, 4).ok());
  ASSERT_TRUE(through->LoadAll(1).ok());
  ASSERT_TRUE(through->TrainSteps(1, 0, 4).ok());
  EXPECT_EQ(StoredIn(*pausing->Checkpoint(2, 4, "/a/four")),
            StoredIn(*through->Checkpoint(1, 4, "/a/four")));
}

TEST_F(RuntimeLoraTest, WithoutItsBaseNothingGoesOn) {
  const auto fleet = Adapted(1, Base(false), false, kLora);
  ASSERT_TRUE(fleet->LoadAll(1).ok());
  ASSERT_TRUE(fleet->TrainSteps(1, 0, 1).ok());
  ASSERT_TRUE(fleet->Checkpoint(1, 1, "/a/one").ok());
  CHECK_OK(fleet->file_system().RemoveAll(kBaseFolder));
  const absl::Status gone = fleet->LoadAll(2, 1, "/a/one");
  EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("initialize.from"));
}

}  // namespace
}  // namespace stagecoach
