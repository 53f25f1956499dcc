// Stage runtimes of a network with states, frozen or tied parameters: what a decision and a
// recovery do to them.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using DigestsByName = std::map<std::string, std::string>;

DigestsByName DigestsOf(RuntimeFleet& fleet, uint64_t generation, uint64_t step,
                        const std::string& folder) {
  const auto manifest = fleet.Checkpoint(generation, step, folder);
  CHECK_OK(manifest.status());
  DigestsByName digests;
  for (const ShardInfo& shard : manifest->shards) {
    for (const ShardTensor& tensor : shard.tensors) digests[tensor.entry.name] = tensor.sha256;
  }
  return digests;
}

class RuntimeStatesTest : public testing::Test {
 protected:
  // Seven layers; the first three are frozen, so that the first of three stages has no backward.
  static std::unique_ptr<RuntimeFleet> NormedFleet(int stages) {
    auto fleet = std::make_unique<RuntimeFleet>(RuntimeFleet::Options{.stages = stages});
    fleet->spec().network =
        SequenceSpec{.width = 4,
                     .context = 4,
                     .vocabulary = 8,
                     .layers = {EmbeddingSpec{}, BatchNormSpec{}, LinearSpec{.out = 6}, GeluSpec{},
                                BatchNormSpec{}, GeluSpec{}, LinearSpec{.out = 8}}};
    fleet->spec().training.freeze = {"model/0000/*", "model/0001/*", "model/0002/*"};
    return fleet;
  }
};

TEST_F(RuntimeStatesTest, ARecoveredPipelineHasTheAveragesOfAnUndisturbedOne) {
  const auto one = NormedFleet(1), three = NormedFleet(3);
  ASSERT_TRUE(one->LoadAll(1).ok());
  const auto expected = one->TrainSteps(1, 0, 5);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const DigestsByName end = DigestsOf(*one, 1, 5, "/a/end");
  ASSERT_TRUE(end.contains("model/0001/running_mean") && end.contains("opt/m/0006/weight"));
  EXPECT_FALSE(end.contains("opt/m/0002/weight")) << "frozen";

  ASSERT_TRUE(three->LoadAll(1).ok());
  ASSERT_TRUE(three->TrainSteps(1, 0, 3).ok());
  const DigestsByName middle = DigestsOf(*three, 1, 3, "/a/middle");
  EXPECT_NE(middle.at("model/0004/running_mean"), end.at("model/0004/running_mean"));
  ASSERT_TRUE(three->RunAll(RuntimeFleet::Train(1, 3, false)).ok()) << "work that is lost";
  ASSERT_TRUE(three->LoadAll(2, 3, "/a/middle", 2).ok());
  const auto rest = three->TrainSteps(2, 3, 5);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->back(), expected->back());
  EXPECT_EQ(DigestsOf(*three, 2, 5, "/a/end"), end);
}

TEST_F(RuntimeStatesTest, ASkippedStepLeavesTheAveragesAndWhatItGatheredIsGone) {
  const auto fleet = NormedFleet(2), other = NormedFleet(2);
  ASSERT_TRUE(fleet->LoadAll(1).ok() && other->LoadAll(1).ok());
  const DigestsByName before = DigestsOf(*fleet, 1, 0, "/a/before");
  ASSERT_TRUE(fleet->RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  RunCommand skip{.fence = RuntimeFleet::FenceOf(1, 1), .apply = RuntimeFleet::Decision(0)};
  skip.apply->apply = false;
  ASSERT_TRUE(fleet->RunAll(skip).ok());
  EXPECT_EQ(DigestsOf(*fleet, 1, 1, "/a/skipped"), before);

  // The other one loads before the next step: nothing of step 0 outlives that.
  ASSERT_TRUE(other->RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  ASSERT_TRUE(other->RunAll(skip).ok());
  ASSERT_TRUE(other->Checkpoint(1, 1, "/a/one").ok());
  ASSERT_TRUE(other->LoadAll(2, 1, "/a/one").ok());
  ASSERT_TRUE(fleet->TrainSteps(1, 1, 2).ok() && other->TrainSteps(2, 1, 2).ok());
  const DigestsByName after = DigestsOf(*fleet, 1, 2, "/a/after");
  EXPECT_EQ(after, DigestsOf(*other, 2, 2, "/a/after"));
  EXPECT_NE(after.at("model/0001/running_mean"), before.at("model/0001/running_mean"));
  EXPECT_EQ(after.at("model/0001/weight"), before.at("model/0001/weight"));
}

// Seven layers, whose head uses the embedding of the first.
std::unique_ptr<RuntimeFleet> TiedFleet(int stages, Precision precision) {
  return std::make_unique<RuntimeFleet>(
      RuntimeFleet::Options{.stages = stages, .tied_embeddings = true, .precision = precision});
}

RunCommand EvaluationOf(uint64_t step, uint64_t batch, uint64_t generation = 1) {
  return {.fence = RuntimeFleet::FenceOf(generation, step),
          .work = WorkKind::kEvaluate,
          .evaluation_batch = batch};
}

// Losses of evaluations at every place where values may be old: after a load, an update, a skipped
// update, and a second mini-batch.
std::vector<double> EvaluationsOf(RuntimeFleet& fleet) {
  std::vector<double> losses;
  const auto run = [&](const RunCommand& command) {
    const auto reports = fleet.RunAll(command);
    CHECK_OK(reports.status());
    losses.push_back(reports->back().loss_sum);
  };
  CHECK_OK(fleet.LoadAll(1));
  run(EvaluationOf(0, 0));
  run(RuntimeFleet::Train(1, 0, false));
  RunCommand applied = EvaluationOf(1, 0);
  applied.apply = RuntimeFleet::Decision(0);
  run(applied);
  run(EvaluationOf(1, 1));
  run(RuntimeFleet::Train(1, 1, false));
  RunCommand skipped = EvaluationOf(2, 0);
  skipped.apply = RuntimeFleet::Decision(1);
  skipped.apply->apply = false;
  run(skipped);
  run(RuntimeFleet::Train(1, 2, false));
  return losses;
}

TEST(RuntimeTied, AnEvaluationReadsTheValuesOfTheLastUpdateWhereverItStands) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const std::vector<double> one = EvaluationsOf(*TiedFleet(1, precision));
    EXPECT_NE(one[0], one[2]);
    EXPECT_EQ(one[2], one[5]);
    for (const int stages : {2, 3, 7}) {
      EXPECT_EQ(EvaluationsOf(*TiedFleet(stages, precision)), one) << stages;
    }
  }
}

void ExpectRecovery(Precision precision, bool frozen) {
  const auto one = TiedFleet(1, precision), three = TiedFleet(3, precision);
  if (frozen) {
    one->spec().training.freeze = three->spec().training.freeze = {"model/0000/token.weight"};
  }
  ASSERT_TRUE(one->LoadAll(1).ok());
  ASSERT_TRUE(one->TrainSteps(1, 0, 3).ok());
  const auto evaluated = one->RunAll(EvaluationOf(3, 0));
  const auto expected = one->TrainSteps(1, 3, 5);
  ASSERT_TRUE(evaluated.ok() && expected.ok()) << expected.status();
  const DigestsByName end = DigestsOf(*one, 1, 5, "/a/end");
  EXPECT_EQ(end.contains("opt/m/0000/token.weight"), !frozen);
  EXPECT_FALSE(end.contains("model/0006/weight")) << "it is the embedding's";

  ASSERT_TRUE(three->LoadAll(1).ok());
  ASSERT_TRUE(three->TrainSteps(1, 0, 3).ok());
  DigestsOf(*three, 1, 3, "/a/middle");
  ASSERT_TRUE(three->RunAll(RuntimeFleet::Train(1, 3, false)).ok()) << "work that is lost";
  for (const int stages : {2, 3}) {
    const auto generation = static_cast<uint64_t>(stages);
    ASSERT_TRUE(three->LoadAll(generation, 3, "/a/middle", stages).ok());
    const auto at_once = three->RunAll(EvaluationOf(3, 0, generation));
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    EXPECT_EQ(at_once->back().loss_sum, evaluated->back().loss_sum) << "no program has brought it";
    const auto rest = three->TrainSteps(generation, 3, 5);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_EQ(rest->back(), expected->back());
    EXPECT_EQ(DigestsOf(*three, generation, 5, "/a/end"), end);
  }
}

// A frozen one too, whose value no program brings.
TEST(RuntimeTied, ARecoveryWithOtherStagesReadsTheOwnersValue) {
  for (const bool frozen : {false, true}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      ExpectRecovery(precision, frozen);
    }
  }
}

}  // namespace
}  // namespace stagecoach
