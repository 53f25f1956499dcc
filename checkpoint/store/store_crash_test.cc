// The promise of a checkpoint: whatever call fails, wherever the process or the power stops,
// whichever byte changes, it loads, and exactly as it was saved.
#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "checkpoint/names.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Survivors = FaultFileSystem::Survivors;

constexpr int kStride = kSanitized ? 7 : 1;

// Two checkpoints are there; the third is saved and the oldest removed.
struct World {
  FaultFileSystem files;
  CheckpointStore store{&files, "/root"};

  World() {
    EXPECT_TRUE(files.MakeFolders("/root").ok());
    EXPECT_TRUE(files.SyncFolder("/").ok());
    for (uint64_t step = 1; step <= 2; ++step) {
      EXPECT_TRUE(SaveToy(files, store, "job", 1, step).ok());
    }
  }
  bool SaveThird() { return SaveToy(files, store, "job", 1, 3).ok(); }
  void Retain() { store.Retain("job", 1, {}).IgnoreError(); }

  // A new coordinator starts, sweeps, loads, and saves the step that may have been lost.
  uint64_t Restart() {
    files.ClearFault();
    CheckpointStore next(&files, "/root");
    next.SweepTemporary("job", 2);
    std::vector<std::string> quarantined;
    const uint64_t step = LoadToy(files, next, "job", &quarantined);
    EXPECT_THAT(quarantined, IsEmpty()) << "a crash leaves nothing broken under a committed name";
    EXPECT_TRUE(SaveToy(files, next, "job", 2, 3).ok());
    EXPECT_EQ(LoadToy(files, next, "job", &quarantined), 3u);
    EXPECT_TRUE(next.Retain("job", 1, {}).ok());
    EXPECT_THAT(*files.List("/root/job"), SizeIs(2)) << "one checkpoint and LATEST";
    return step;
  }
};

struct Calls {
  int64_t save = 0;
  int64_t all = 0;
};

Calls CountCalls() {
  World world;
  const int64_t start = world.files.calls();
  EXPECT_TRUE(world.SaveThird());
  const int64_t saved = world.files.calls();
  world.Retain();
  return {.save = saved - start, .all = world.files.calls() - start};
}

TEST(CheckpointCrash, AnyOneFailedCallLeavesTheOlderCheckpointAndCommitsNothing) {
  const Calls calls = CountCalls();
  ASSERT_GT(calls.save, 25);
  int failed = 0;
  for (int64_t n = 1; n <= calls.save; ++n) {
    SCOPED_TRACE(absl::StrCat("call ", n));
    World world;
    world.files.Inject({.call = n, .code = absl::StatusCode::kDataLoss});
    const bool saved = world.SaveThird();
    failed += !saved;
    EXPECT_EQ(world.Restart(), saved ? 3u : 2u);
  }
  EXPECT_GT(failed, 20) << "only the calls for LATEST may fail without failing the save";
}

TEST(CheckpointCrash, AProcessThatDiesAtAnyCallLeavesTheNewOrTheOlderCheckpoint) {
  const Calls calls = CountCalls();
  int lost = 0, kept = 0;
  for (int64_t n = 1; n <= calls.all; n += kSanitized ? 3 : 1) {
    for (const bool after_effect : {false, true}) {
      SCOPED_TRACE(absl::StrCat("call ", n, after_effect ? ", done" : ", not done"));
      World world;
      world.files.Inject({.call = n, .from_then_on = true, .after_effect = after_effect});
      const bool saved = world.SaveThird();
      if (saved) world.Retain();
      const uint64_t step = world.Restart();
      EXPECT_GE(step, 2u);
      EXPECT_TRUE(step == 3 || !saved);
      ++(step == 3 ? kept : lost);
    }
  }
  EXPECT_GT(lost, 0);
  EXPECT_GT(kept, 0);
}

TEST(CheckpointCrash, APowerCutAfterAnyCallLosesNoCommittedCheckpoint) {
  const Calls calls = CountCalls();
  for (const Survivors survivors :
       {Survivors::kSynced, Survivors::kEntries, Survivors::kContents, Survivors::kLeaves}) {
    for (int64_t n = 1; n <= calls.all + 1; n += kSanitized ? 3 : 1) {
      SCOPED_TRACE(absl::StrCat("before call ", n, ", survivors ", static_cast<int>(survivors)));
      World world;
      world.files.Inject({.call = n, .from_then_on = true});
      const bool saved = world.SaveThird();
      if (saved) world.Retain();
      world.files.CutPower(survivors);
      const uint64_t step = world.Restart();
      EXPECT_GE(step, 2u);
      EXPECT_TRUE(step == 3 || !saved) << "what was reported as committed must be durable";
    }
  }
}

TEST(CheckpointCrash, TheFirstCheckpointOfAJobOutlastsAPowerCut) {
  FaultFileSystem files;
  ASSERT_TRUE(files.MakeFolders("/root").ok());
  ASSERT_TRUE(files.SyncFolder("/").ok());
  CheckpointStore store(&files, "/root");
  ASSERT_TRUE(SaveToy(files, store, "job", 1, 1).ok());
  files.CutPower(Survivors::kSynced);
  EXPECT_EQ(LoadToy(files, store, "job", nullptr), 1u);
}

TEST(CheckpointCrash, ADiskThatFillsUpAnywhereKeepsTheOlderCheckpointAndRecovers) {
  int64_t before = 0, after = 0;
  {
    World world;
    world.files.SetCapacity(1 << 20);
    before = (1 << 20) - *world.files.FreeBytes("/");
    ASSERT_TRUE(world.SaveThird());
    after = (1 << 20) - *world.files.FreeBytes("/");
  }
  ASSERT_GT(after, before + 1000);
  for (int64_t capacity = before; capacity < after; capacity += kSanitized ? 97 : 29) {
    SCOPED_TRACE(absl::StrCat("capacity ", capacity));
    World world;
    world.files.SetCapacity(capacity);
    const absl::Status status = SaveToy(world.files, world.store, "job", 1, 3).status();
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    world.files.SetCapacity(1 << 20);
    EXPECT_EQ(world.Restart(), status.ok() ? 3u : 2u);
  }
}

// Bit rot and torn writes in what was committed.
class DamageTest : public testing::Test {
 protected:
  const std::string folder_ = "/root/job/step-000000000002";
  World world_;
  const std::vector<std::string> files_ = world_.files.List(folder_).value();

  // The damaged newest checkpoint is refused by name, and the one before is loaded instead.
  void ExpectFallback(const std::string& file, const std::string& bytes) {
    const std::string path = JoinPath(folder_, file);
    const std::string good = world_.files.Contents(path);
    world_.files.SetContents(path, bytes);
    const absl::Status named = world_.store.FindLoadable("job", 2, nullptr).status();
    EXPECT_TRUE(absl::IsDataLoss(named)) << named;
    EXPECT_NE(named.message().find("step 2"), absl::string_view::npos) << named;
    std::vector<std::string> quarantined;
    absl::StatusOr<CheckpointRef> found = world_.store.FindLoadable("job", -1, &quarantined);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->step, 1u);
    ASSERT_THAT(quarantined, SizeIs(1));
    EXPECT_THAT(quarantined[0], StartsWith("step-000000000002: "));
    ASSERT_TRUE(world_.files.Rename("/root/job/.broken-step-000000000002", folder_).ok());
    world_.files.SetContents(path, good);
  }
};

TEST_F(DamageTest, EveryChangedByteIsFound) {
  for (const std::string& file : files_) {
    const std::string good = world_.files.Contents(JoinPath(folder_, file));
    for (size_t i = 0; i < good.size(); i += kStride) {
      SCOPED_TRACE(absl::StrCat(file, " byte ", i));
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      ExpectFallback(file, bad);
    }
  }
  EXPECT_THAT(files_, SizeIs(3));
  EXPECT_EQ(LoadToy(world_.files, world_.store, "job", nullptr), 2u) << "nothing was left damaged";
}

TEST_F(DamageTest, EveryTruncationAndExtensionIsFound) {
  for (const std::string& file : files_) {
    const std::string good = world_.files.Contents(JoinPath(folder_, file));
    for (size_t length = 0; length < good.size(); length += kStride) {
      SCOPED_TRACE(absl::StrCat(file, " cut to ", length));
      ExpectFallback(file, good.substr(0, length));
    }
    ExpectFallback(file, good + std::string(1, '\0'));
    ExpectFallback(file, std::string(good.size(), '\0'));
  }
}

TEST_F(DamageTest, EveryMissingFileIsFound) {
  for (const std::string& file : files_) {
    World world;
    ASSERT_TRUE(world.files.RemoveAll(JoinPath(folder_, file)).ok());
    std::vector<std::string> quarantined;
    EXPECT_EQ(LoadToy(world.files, world.store, "job", &quarantined), 1u);
    EXPECT_THAT(quarantined, SizeIs(1)) << file;
  }
}

}  // namespace
}  // namespace stagecoach
