// Stage runtimes of a job that begins with a file of weights.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/store/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "network/zoo/vit.h"
#include "plan/data/idx.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kExport[] = "/exports/first";
constexpr char kWeights[] = "/exports/first/model.safetensors";

using Sha256ByName = std::map<std::string, std::string>;

Sha256ByName TensorsOf(const Manifest& manifest) {
  Sha256ByName tensors;
  for (const ShardInfo& shard : manifest.shards) {
    for (const ShardTensor& tensor : shard.tensors) tensors[tensor.entry.name] = tensor.sha256;
  }
  return tensors;
}

// Of a fleet that has just loaded.
Sha256ByName BeginningOf(RuntimeFleet& fleet) {
  CHECK_OK(fleet.LoadAll(1));
  const auto manifest = fleet.Checkpoint(1, 0, "/a/begin");
  CHECK_OK(manifest.status());
  return TensorsOf(*manifest);
}

class RuntimeWeightsTest : public testing::Test {
 protected:
  static std::unique_ptr<RuntimeFleet> Fleet(int stages, uint64_t seed = 5) {
    auto fleet = std::make_unique<RuntimeFleet>(RuntimeFleet::Options{.stages = stages});
    fleet->spec().seed = seed;
    return fleet;
  }
  // Seven layers, two of them with states.
  static std::unique_ptr<RuntimeFleet> NormedFleet(int stages, uint64_t seed = 5) {
    auto fleet = Fleet(stages, seed);
    fleet->spec().network =
        SequenceSpec{.width = 4,
                     .context = 4,
                     .vocabulary = 8,
                     .layers = {EmbeddingSpec{}, BatchNormSpec{}, LinearSpec{.out = 6}, GeluSpec{},
                                BatchNormSpec{}, GeluSpec{}, LinearSpec{.out = 8}}};
    return fleet;
  }

  // Trains for three steps and exports; what it has then.
  static Sha256ByName TrainAndExport(RuntimeFleet& fleet) {
    CHECK_OK(fleet.LoadAll(1));
    CHECK_OK(fleet.TrainSteps(1, 0, 3).status());
    const std::string folder = "/a/step-000000000003";
    const auto manifest = fleet.Checkpoint(1, 3, folder);
    CHECK_OK(manifest.status());
    CHECK_OK(
        ExportWeights(fleet.file_system(), {"a", 3, folder}, *manifest, kExport, "{}").status());
    return TensorsOf(*manifest);
  }

  static void BeginWithExport(RuntimeFleet& from, RuntimeFleet* fleet) {
    CHECK_OK(fleet->file_system().MakeFolders(kExport));
    CHECK_OK(fleet->file_system().Create(kWeights).status());
    fleet->file_system().SetContents(kWeights, from.file_system().Contents(kWeights));
    fleet->spec().initialize.from = kExport;
  }
};

TEST_F(RuntimeWeightsTest, EveryPipelineBeginsAndTrainsAlike) {
  const auto first = NormedFleet(2, 9);
  const Sha256ByName trained = TrainAndExport(*first);
  const Sha256ByName own = BeginningOf(*NormedFleet(1));
  std::vector<double> losses;
  for (const int stages : {1, 2, 3}) {
    const auto fleet = NormedFleet(stages);
    BeginWithExport(*first, fleet.get());
    fleet->spec().initialize.except = {"model/0006/*"};
    const Sha256ByName begin = BeginningOf(*fleet);
    for (const auto& [name, sha256] : begin) {
      if (!name.starts_with("model/")) continue;
      const bool excepted = name.starts_with("model/0006/");
      EXPECT_EQ(sha256, excepted ? own.at(name) : trained.at(name)) << name << " K=" << stages;
    }
    EXPECT_NE(begin.at("model/0001/running_mean"), own.at("model/0001/running_mean"));
    EXPECT_NE(begin.at("model/0006/weight"), trained.at("model/0006/weight"));
    const auto steps = fleet->TrainSteps(1, 0, 3);
    ASSERT_TRUE(steps.ok()) << steps.status();
    if (losses.empty()) losses = *steps;
    EXPECT_EQ(*steps, losses) << stages;
  }
}

// A copy of a tied parameter, bfloat16 copies, and averages begin with what the file has.
TEST_F(RuntimeWeightsTest, WhatFollowsFromWeightsFollowsFromTheFiles) {
  const auto tied = [](int stages, uint64_t seed) {
    auto fleet = Fleet(stages, seed);
    fleet->spec().network = GptSpec{.layers = 2,
                                    .width = 4,
                                    .heads = 2,
                                    .context = 4,
                                    .vocabulary = 8,
                                    .tied_embeddings = true};
    fleet->spec().precision = Precision::kBfloat16;
    fleet->spec().training.average.decay = 0.5;
    return fleet;
  };
  const auto evaluation = [](RuntimeFleet& fleet, uint64_t step, bool average) {
    const auto reports = fleet.RunAll(
        {.fence = RuntimeFleet::FenceOf(1, step), .work = WorkKind::kEvaluate, .average = average});
    CHECK_OK(reports.status());
    return reports->back().loss_sum;
  };
  const auto first = tied(1, 9);
  TrainAndExport(*first);
  const double expected = evaluation(*first, 3, false);
  for (const int stages : {1, 3}) {
    const auto fleet = tied(stages, 5);
    BeginWithExport(*first, fleet.get());
    ASSERT_TRUE(fleet->LoadAll(1).ok());
    EXPECT_EQ(evaluation(*fleet, 0, false), expected) << stages;
    EXPECT_EQ(evaluation(*fleet, 0, true), expected) << stages;
  }
}

TEST_F(RuntimeWeightsTest, StagesTellWhatTheyReadUntilThereIsACheckpoint) {
  const auto first = NormedFleet(1, 9), fleet = NormedFleet(2);
  TrainAndExport(*first);
  BeginWithExport(*first, fleet.get());
  const auto load = [&fleet](int stage, LoadCommand command) {
    LoadAnswer answer;
    fleet->runtime(stage).Load(std::move(command), answer.callback());
    return answer.Get();
  };
  std::vector<std::string> read;
  for (const int stage : {0, 1}) {
    const auto begun = load(stage, fleet->LoadOf(stage, 1, 0));
    ASSERT_TRUE(begun.ok()) << begun.status();
    EXPECT_EQ(begun->weights.header_sha256.size(), 64u);
    EXPECT_EQ(begun->weights.named_sha256.size(), 64u);
    EXPECT_EQ(begun->weights.tensors, 14);
    EXPECT_THAT(begun->weights_notes,
                ElementsAre(absl::StrCat("begins with 14 of 14 arrays from ", kWeights)));
    for (const WeightsRead::Tensor& tensor : begun->weights.read) read.push_back(tensor.name);
  }
  EXPECT_EQ(read.size(), 14u) << "each by one stage";

  // From then on the file may be gone.
  ASSERT_TRUE(fleet->LoadAll(2).ok());
  ASSERT_TRUE(fleet->TrainSteps(2, 0, 1).ok());
  ASSERT_TRUE(fleet->Checkpoint(2, 1, "/a/one").ok());
  CHECK_OK(fleet->file_system().RemoveAll(kExport));
  const auto gone_on = load(0, fleet->LoadOf(0, 5, 1, "/a/one"));
  ASSERT_TRUE(gone_on.ok()) << gone_on.status();
  EXPECT_EQ(gone_on->weights, WeightsRead());
}

// An IDX file of unsigned bytes.
std::string IdxText(const std::vector<uint32_t>& extents) {
  std::string text("\0\0\x08", 3);
  text += static_cast<char>(extents.size());
  size_t count = 1;
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(extent >> shift & 0xff);
    count *= extent;
  }
  for (size_t i = 0; i < count; ++i) text += static_cast<char>(i % 3);
  return text;
}

// The stage with the positions tells it, when it reads the file; a checkpoint has them in the new
// size.
TEST_F(RuntimeWeightsTest, AViTBeginsWithTheWeightsOfAnotherImageSize) {
  const auto vit = [](int stages, uint32_t height, uint32_t width) {
    return std::make_unique<RuntimeFleet>(RuntimeFleet::Options{
        .stages = stages, .change = [=](const TemporaryFolder& folder, JobSpec* spec) {
          spec->network = VitSpec{.image = {height, width, 1},
                                  .classes = 3,
                                  .patch = 2,
                                  .layers = 1,
                                  .width = 4,
                                  .heads = 2};
          spec->data = IdxData{.images = folder.Write("images", IdxText({40, height, width})),
                               .labels = folder.Write("labels", IdxText({40}))};
        }});
  };
  const auto first = vit(1, 6, 6);
  const Sha256ByName trained = TrainAndExport(*first);
  Sha256ByName begin;
  for (const int stages : {1, 2}) {
    const auto fleet = vit(stages, 4, 8);
    BeginWithExport(*first, fleet.get());
    const Sha256ByName now = BeginningOf(*fleet);
    if (begin.empty()) begin = now;
    EXPECT_EQ(now, begin) << stages;
    for (const auto& [name, sha256] : now) {
      if (!name.starts_with("model/")) continue;
      EXPECT_EQ(sha256 == trained.at(name), name != "model/0000/position") << name;
    }
    for (int stage = 0; stage < stages; ++stage) {
      const auto notes = [&](const LoadCommand& command) {
        LoadAnswer answer;
        fleet->runtime(stage).Load(command, answer.callback());
        const auto loaded = answer.Get();
        CHECK_OK(loaded.status());
        return loaded->weights_notes;
      };
      const auto begins = HasSubstr("begins with 20 of 20 arrays");
      if (stage == 0) {
        EXPECT_THAT(
            notes(fleet->LoadOf(stage, 2, 0)),
            ElementsAre(begins,
                        "resampled the positions model/0000/position from 3x3 to 2x4 patches"));
      } else {
        EXPECT_THAT(notes(fleet->LoadOf(stage, 2, 0)), ElementsAre(begins));
      }
      EXPECT_THAT(notes(fleet->LoadOf(stage, 3, 0, "/a/begin")), IsEmpty());
    }
  }
}

TEST_F(RuntimeWeightsTest, AFileThatDoesNotFitLoadsNothing) {
  const auto first = NormedFleet(1, 9), fleet = NormedFleet(2);
  TrainAndExport(*first);
  BeginWithExport(*first, fleet.get());
  fleet->spec().network =
      SequenceSpec{.width = 4,
                   .context = 4,
                   .vocabulary = 8,
                   .layers = {EmbeddingSpec{}, BatchNormSpec{}, GeluSpec{}, LinearSpec{.out = 6},
                              BatchNormSpec{}, GeluSpec{}, LinearSpec{.out = 8}}};
  for (const int k : {0, 1}) {  // whatever the stage holds
    LoadAnswer answer;
    fleet->runtime(k).Load(fleet->LoadOf(k, 1, 0), answer.callback());
    const absl::Status refused = answer.Get().status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("there is no tensor model/0003/weight"));
    EXPECT_EQ(fleet->runtime(k).Status().state, "empty");
  }
}

}  // namespace
}  // namespace stagecoach
