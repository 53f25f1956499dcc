// Removal on request: what is named goes, whole and for good, and nothing else.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "base/testing/status_is.h"
#include "checkpoint/files/folder_bytes.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Survivors = FaultFileSystem::Survivors;

constexpr char kShard[] = "/root/job/step-000000000004/layer-0000-0001.safetensors";

class StoreRemoveTest : public testing::Test {
 protected:
  StoreRemoveTest() {
    EXPECT_TRUE(files_.MakeFolders("/root").ok());
    EXPECT_TRUE(files_.SyncFolder("/").ok());
    for (const uint64_t step : {2, 3, 4}) {
      EXPECT_TRUE(SaveToy(files_, store_, "job", 1, step).ok());
    }
    EXPECT_TRUE(SaveToy(files_, store_, "other", 1, 4).ok());
  }

  std::vector<uint64_t> Steps(const std::string& job = "job") {
    std::vector<uint64_t> steps;
    for (const CheckpointRef& ref : store_.List(job)) steps.push_back(ref.step);
    std::reverse(steps.begin(), steps.end());
    return steps;
  }
  absl::Status Remove(const CheckpointRemoval& removal) {
    return store_.Remove("job", removal).status();
  }

  FaultFileSystem files_;
  CheckpointStore store_{&files_, "/root"};
};

TEST_F(StoreRemoveTest, RemovesWhatIsNamedAndTellsItsBytes) {
  const int64_t before = BytesBelow(files_, "/root/job");
  const absl::StatusOr<RemovedCheckpoints> removed = store_.Remove("job", {.steps = {4, 2, 4}});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(removed->steps, ElementsAre(2, 4));
  EXPECT_GT(removed->bytes, 0);
  EXPECT_EQ(BytesBelow(files_, "/root/job"), before - removed->bytes);
  EXPECT_THAT(*files_.List("/root/job"), ElementsAre("LATEST", "step-000000000003"));
  EXPECT_EQ(files_.Contents("/root/job/LATEST"), "step-000000000003\n");
  EXPECT_THAT(Steps("other"), ElementsAre(4));
  EXPECT_TRUE(Remove({.steps = {3}}).ok()) << "the last one";
  EXPECT_THAT(*files_.List("/root/job"), IsEmpty());
}

TEST_F(StoreRemoveTest, AStepThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_THAT(Remove({.steps = {3, 5}}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no checkpoint of step 5; it has those of 2, 3, 4")));
  EXPECT_THAT(Steps(), ElementsAre(2, 3, 4)) << "then none is removed";
  EXPECT_TRUE(Remove({.steps = {3, 5}, .missing_ok = true}).ok());
  EXPECT_THAT(Steps(), ElementsAre(2, 4));
  EXPECT_THAT(store_.Remove("nobody", {.steps = {1}}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("it has none")));
}

TEST_F(StoreRemoveTest, WhatIsInUseStays) {
  EXPECT_THAT(
      Remove({.steps = {2, 3}, .pinned = {3}}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("step 3: this checkpoint")));
  EXPECT_THAT(Remove({.steps = {2, 4}, .keep_newest = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cancel that job first")));
  EXPECT_THAT(Steps(), ElementsAre(2, 3, 4));
  EXPECT_TRUE(Remove({.steps = {2, 3}, .keep_newest = true, .pinned = {4}}).ok());
}

// It goes back to the newest one that holds.
TEST_F(StoreRemoveTest, IfTheNewestIsDamagedTheOneBeforeStaysToo) {
  files_.SetContents(kShard, "damaged");
  EXPECT_THAT(Remove({.steps = {3}, .keep_newest = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("step 3: ")));
  EXPECT_TRUE(Remove({.steps = {2}, .keep_newest = true}).ok());
  EXPECT_THAT(Steps(), ElementsAre(3, 4));
}

TEST_F(StoreRemoveTest, ADamagedOneIsRemovedByItsStep) {
  ASSERT_TRUE(files_.RemoveAll("/root/job/step-000000000004/MANIFEST.json").ok());
  EXPECT_TRUE(Remove({.steps = {4}}).ok());
  EXPECT_THAT(*files_.List("/root/job"),
              ElementsAre("LATEST", "step-000000000002", "step-000000000003"));
}

TEST_F(StoreRemoveTest, AJobGoesWithWhatWasSetAside) {
  files_.SetContents(kShard, "damaged");
  ASSERT_TRUE(store_.FindLoadable("job", -1, nullptr).ok());
  ASSERT_TRUE(store_.Begin("job", 1, 9, 0).ok());
  EXPECT_TRUE(store_.RemoveJob("job").ok());
  EXPECT_THAT(*files_.List("/root"), ElementsAre("other"));
  EXPECT_TRUE(store_.RemoveJob("job").ok()) << "again";
}

// Wherever the process or the power stops, a committed name has a whole checkpoint.
TEST(StoreRemoveCrash, LeavesEachCheckpointWholeOrGone) {
  int whole = 0, gone = 0;
  for (const bool power : {false, true}) {
    for (int64_t call = 1; call < 200; call += kSanitized ? 3 : 1) {
      SCOPED_TRACE(absl::StrCat("call ", call, power ? ", power" : ""));
      FaultFileSystem files;
      ASSERT_TRUE(files.MakeFolders("/root").ok());
      ASSERT_TRUE(files.SyncFolder("/").ok());
      CheckpointStore store(&files, "/root");
      for (const uint64_t step : {2, 3, 4}) {
        ASSERT_TRUE(SaveToy(files, store, "job", 1, step).ok());
      }
      files.Inject({.call = call, .from_then_on = true});
      const bool removed = store.Remove("job", {.steps = {2, 4}}).ok();
      if (power) files.CutPower(Survivors::kSynced);
      files.ClearFault();

      CheckpointStore next(&files, "/root");
      next.SweepTemporary("job", 2);
      for (const CheckpointRef& ref : next.ListWithDamaged("job")) {
        EXPECT_TRUE(next.Verify(ref, true).ok()) << ref.folder;
      }
      const uint64_t newest = LoadToy(files, next, "job", nullptr);
      EXPECT_THAT(newest, AnyOf(3, 4));
      EXPECT_TRUE(newest == 3 || !removed);
      ++(newest == 4 ? whole : gone);
      EXPECT_TRUE(next.Remove("job", {.steps = {2, 4}, .missing_ok = true}).ok());
      EXPECT_THAT(*files.List("/root/job"), ElementsAre("LATEST", "step-000000000003"));
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(gone, 0);
}

TEST(StoreRemoveCrash, OfAJobThatGoesNoHalfCheckpointIsLeftAndTheRestGoesLater) {
  for (int64_t call = 1; call < 100; ++call) {
    SCOPED_TRACE(call);
    FaultFileSystem files;
    ASSERT_TRUE(files.MakeFolders("/root").ok());
    CheckpointStore store(&files, "/root");
    for (const uint64_t step : {2, 3}) ASSERT_TRUE(SaveToy(files, store, "job", 1, step).ok());
    files.Inject({.call = call, .from_then_on = true});
    store.RemoveJob("job").IgnoreError();
    files.ClearFault();
    for (const CheckpointRef& ref : store.ListWithDamaged("job")) {
      EXPECT_TRUE(store.Verify(ref, true).ok()) << ref.folder;
    }
    EXPECT_TRUE(store.RemoveJob("job").ok());
    EXPECT_THAT(*files.List("/root"), IsEmpty());
  }
}

}  // namespace
}  // namespace stagecoach
