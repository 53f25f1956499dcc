#include "coordinator/loop/store_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;

class StoreEffectsTest : public testing::Test {
 protected:
  // Step 4, of the toy model, whose first tensor ends with `value`; `keep` as the last
  // checkpoint's.
  CheckpointRef CommitLast(float value, const DataFacts& facts = {}) {
    std::vector<ToyTensor> model = ToyModel(4);
    std::memcpy(&model[0].bytes.back() - sizeof value + 1, &value, sizeof value);
    CommitCheckpoint action{.fence = Fence(),
                            .folder = *store_.Begin("job", 1, 4, 0),
                            .manifest = ToyManifest("job", 1, 4),
                            .expected = ToyExpected(),
                            .keep = kKeepAll};
    action.manifest.shards.push_back(*WriteToyShard(files_, action.folder, model, 0, 2));
    action.manifest.facts = facts;
    return *RunCommit(store_, action, absl::OkStatus(), pins_).ref;
  }
  static stagecoach::Fence Fence() {
    stagecoach::Fence fence;
    fence.job = "job";
    return fence;
  }
  WeightsExported Export(const CheckpointRef& ref) {
    return RunExport(store_, files_, {.fence = Fence(), .ref = ref, .keep = 1}, "/out", "{}\n",
                     absl::OkStatus(), pins_);
  }
  std::vector<uint64_t> Steps() {
    std::vector<uint64_t> steps;
    for (const CheckpointRef& ref : store_.List("job")) steps.push_back(ref.step);
    return steps;
  }

  FaultFileSystem files_;
  CheckpointStore store_{&files_, "/root"};
  CheckpointPins pins_;
};

// With keep: 1 the checkpoint before went at the commit, and weights with infinities were all that
// was left.
TEST_F(StoreEffectsTest, OldCheckpointsGoOnceTheWeightsAreExported) {
  ASSERT_TRUE(SaveToy(files_, store_, "job", 1, 2).ok());
  EXPECT_FALSE(Export(CommitLast(std::numeric_limits<float>::infinity())).result.ok());
  EXPECT_THAT(Steps(), ElementsAre(4, 2));
}

TEST_F(StoreEffectsTest, AnExportLeavesSoManyAsTheJobKeeps) {
  ASSERT_TRUE(SaveToy(files_, store_, "job", 1, 2).ok());
  const CheckpointRef last = CommitLast(1);
  EXPECT_THAT(Steps(), ElementsAre(4, 2));
  EXPECT_TRUE(Export(last).result.ok());
  EXPECT_THAT(Steps(), ElementsAre(4));
}

// Snapshots and restarted coordinators have none: an export of such a checkpoint had no names of
// classes.
TEST_F(StoreEffectsTest, AManifestWithoutFactsOfTheDataTakesThoseOfTheCheckpointBefore) {
  DataFacts facts;
  facts.classes = {"ape", "bee"};
  const std::string before = *store_.Begin("job", 1, 2, 0);
  Manifest manifest = ToyManifest("job", 1, 2);
  manifest.shards.push_back(*WriteToyShard(files_, before, ToyModel(2), 0, 2));
  manifest.facts = facts;
  ASSERT_TRUE(store_.Commit(before, manifest, ToyExpected()).ok());
  EXPECT_EQ(store_.ReadManifest(CommitLast(1))->facts, facts);
}

}  // namespace
}  // namespace stagecoach
