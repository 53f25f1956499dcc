// Shards that are written beside the next steps: what waits, what does not, and that the files have
// the bytes of the step they were copied at.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

constexpr uint64_t kStep = 3;

class ShardBesideTest : public testing::Test {
 protected:
  ShardBesideTest() { Make({.stages = 2}); }

  void Make(const RuntimeFleet::Options& options) {
    fleet_ = std::make_unique<RuntimeFleet>(options);
    CHECK_OK(fleet_->file_system().MakeFolders("/beside"));
    ASSERT_TRUE(fleet_->LoadAll(1).ok());
  }

  // Applies the decision about the step before and copies, as the coordinator has it done.
  std::vector<StepReport> Copy(uint64_t step) {
    RunCommand command{.fence = FenceOf(step), .copy_shard = true};
    command.apply = RuntimeFleet::Decision(step - 1);
    auto reports = fleet_->RunAll(command);
    CHECK_OK(reports.status());
    return *std::move(reports);
  }
  // Steps [first, last), whose last decision is not applied yet.
  void Train(uint64_t first, uint64_t last, bool decides) {
    for (uint64_t step = first; step < last; ++step) {
      RunCommand command = RuntimeFleet::Train(1, step, decides);
      CHECK_OK(fleet_->RunAll(command).status());
      decides = true;
    }
  }
  // A fence of its own: an attempt as the coordinator counts them.
  static Fence FenceOf(uint64_t step) {
    Fence fence = RuntimeFleet::FenceOf(1, step);
    fence.attempt = 7;
    return fence;
  }
  void Write(int k, ShardAnswer* answer, const std::string& folder = "/beside") {
    fleet_->runtime(k).WriteShard({.fence = FenceOf(kStep), .folder = folder}, answer->callback());
  }
  FaultFileSystem& files() { return fleet_->file_system(); }

  std::unique_ptr<RuntimeFleet> fleet_;
};

TEST_F(ShardBesideTest, StepsRunWhileAWriteIsBlockedAndTheFileHasTheStepOfTheCopy) {
  Train(0, kStep, false);
  for (const StepReport& report : Copy(kStep)) {
    EXPECT_TRUE(report.shard_copied);
    EXPECT_GT(report.phases[Phase::kCheckpoint], 0);
  }
  files().HoldWrites();
  std::vector<ShardAnswer> answers(2);
  for (int k = 0; k < 2; ++k) Write(k, &answers[k]);
  files().AwaitHeldWrite();
  Train(kStep, kStep + 3, false);  // would wait here for ever
  for (const ShardAnswer& answer : answers) EXPECT_FALSE(answer.ready());
  files().LetWritesGo();
  std::vector<ShardInfo> beside;
  for (ShardAnswer& answer : answers) {
    const auto shard = answer.Get();
    ASSERT_TRUE(shard.ok()) << shard.status();
    beside.push_back(*shard);
  }
  EXPECT_GT(fleet_->runtime(0).Status().shard_progress, 0u);

  // The same steps again, written in the steps' place.
  ASSERT_TRUE(fleet_->LoadAll(2).ok());
  ASSERT_TRUE(fleet_->TrainSteps(2, 0, kStep).ok());
  const auto manifest = fleet_->Checkpoint(2, kStep, "/in-place");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  for (size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(beside[k], manifest->shards[k]);
    EXPECT_EQ(files().Contents("/beside/" + beside[k].file),
              files().Contents("/in-place/" + beside[k].file));
  }
}

TEST_F(ShardBesideTest, ARepeatedCommandHasTheSameAnswer) {
  Train(0, kStep, false);
  Copy(kStep);
  files().HoldWrites();
  ShardAnswer first, meanwhile, afterwards;
  Write(0, &first);
  files().AwaitHeldWrite();
  Write(0, &meanwhile);
  files().LetWritesGo();
  const auto shard = first.Get();
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(*meanwhile.Get(), *shard);
  Train(kStep, kStep + 1, false);
  Write(0, &afterwards);
  EXPECT_EQ(*afterwards.Get(), *shard);
}

TEST_F(ShardBesideTest, OneCopyAtATime) {
  Train(0, kStep, false);
  Copy(kStep);
  files().HoldWrites();
  ShardAnswer answer;
  Write(0, &answer);
  files().AwaitHeldWrite();
  Train(kStep, kStep + 1, false);
  const std::vector<StepReport> reports = Copy(kStep + 1);
  EXPECT_FALSE(reports[0].shard_copied);
  EXPECT_THAT(reports[0].copy_note, HasSubstr("still being written"));
  EXPECT_TRUE(reports[1].shard_copied) << "nobody asked for the one before";
  files().LetWritesGo();
  EXPECT_TRUE(answer.Get().ok());
}

TEST_F(ShardBesideTest, AnAbortEndsTheWriteOnceTheDiskAnswers) {
  Train(0, kStep, false);
  Copy(kStep);
  files().HoldWrites();
  ShardAnswer answer;
  Write(0, &answer);
  files().AwaitHeldWrite();
  ASSERT_TRUE(fleet_->runtime(0).Abort(FenceOf(kStep), absl::AbortedError("lost stage 1")).ok());
  Await([&] { return fleet_->runtime(0).Status().state == "aborted"; });
  files().LetWritesGo();
  const absl::Status ended = answer.Get().status();
  EXPECT_TRUE(absl::IsAborted(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("stage 0"));
  // What was copied is gone with the cell.
  ShardAnswer late;
  Write(0, &late);
  EXPECT_TRUE(absl::IsAborted(late.Get().status()));
  ASSERT_TRUE(fleet_->LoadAll(2).ok()) << "the writer is free again";
}

TEST_F(ShardBesideTest, ADiskThatFailsIsNamedAndTheStepsGoOn) {
  Train(0, kStep, false);
  Copy(kStep);
  files().SetCapacity(10);
  ShardAnswer answer;
  Write(1, &answer);
  const absl::Status full = answer.Get().status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("stage 1"));
  files().SetCapacity(int64_t{1} << 30);
  Train(kStep, kStep + 1, false);
  EXPECT_TRUE(Copy(kStep + 1)[1].shard_copied) << "the next one is tried";
}

// The limit that the job itself needs, and nothing beside it.
TEST_F(ShardBesideTest, WithoutRoomTheExecutorWritesTheCell) {
  int64_t limit = int64_t{1} << 20;
  const auto runs = [&] {
    fleet_ = std::make_unique<RuntimeFleet>(
        RuntimeFleet::Options{.stages = 2, .memory_limit_bytes = limit});
    return fleet_->LoadAll(1).ok() && fleet_->TrainSteps(1, 0, kStep).ok();
  };
  while (runs()) limit -= limit / 64;
  limit += limit / 32;
  ASSERT_TRUE(runs());
  const auto report = fleet_->Run(1, {.fence = FenceOf(kStep), .copy_shard = true});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->shard_copied);
  EXPECT_THAT(report->copy_note, HasSubstr("--memory-limit-bytes"));
  CHECK_OK(files().MakeFolders("/beside"));
  ShardAnswer answer;
  Write(1, &answer);
  EXPECT_TRUE(answer.Get().ok());
}

// Symptom: a stage that was told to end left behind its copy; the job dropped the checkpoint that was
// being written, and ran the step again.
TEST_F(ShardBesideTest, AStageThatIsToEndWritesInTheStepsPlace) {
  Train(0, kStep, false);
  fleet_->runtime(0).Drain(0.01);
  const std::vector<StepReport> reports = Copy(kStep);
  EXPECT_FALSE(reports[0].shard_copied);
  EXPECT_THAT(reports[0].copy_note, HasSubstr("shutting down"));
  EXPECT_TRUE(reports[1].shard_copied);
  ShardAnswer answer;
  Write(0, &answer);
  EXPECT_TRUE(answer.Get().ok());
}

TEST_F(ShardBesideTest, AnEndingStageAnswersAfterTheCallUnderWay) {
  Train(0, kStep, false);
  Copy(kStep);
  files().HoldWrites();
  ShardAnswer answer;
  Write(0, &answer);
  files().AwaitHeldWrite();
  std::thread release([this] { files().LetWritesGo(); });
  fleet_->runtime(0).Shutdown();
  release.join();
  EXPECT_TRUE(answer.ready());
}

}  // namespace
}  // namespace stagecoach
