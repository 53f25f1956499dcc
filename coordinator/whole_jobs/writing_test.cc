// Whole jobs that write texts. Whatever is lost or started anew on the way, a reader has each
// line's text once and whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/whole_jobs/test_cluster_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Texts = std::map<int64_t, std::string>;  // by line

// 10 lines, so three mini-batches.
JobSpec WritingJob(int stages = 2) {
  JobSpec spec = SmallJob(stages);
  spec.seed = 11;
  spec.initialize.from = "/weights";
  spec.evaluation = {};
  spec.pipeline.partition = PartitionSpec{};
  spec.write =
      WriteSpec{.lines = std::vector<std::string>(10, "a prompt"), .generate = GenerateSpec{}};
  return spec;
}

// As a client reads: a piece may come again, and none is missing.
Texts TextsOf(const std::vector<JobRecord>& records) {
  Texts texts;
  std::set<int64_t> done;
  for (const JobRecord& record : records) {
    for (const WrittenPiece& piece : record.written) {
      std::string& text = texts[piece.line];
      const auto offset = static_cast<size_t>(piece.offset);
      EXPECT_LE(offset, text.size()) << "line " << piece.line << " has a gap";
      const size_t known = std::min(text.size() - offset, piece.text.size());
      EXPECT_EQ(text.substr(offset, known), piece.text.substr(0, known)) << "other bytes";
      text += piece.text.substr(known);
      if (piece.done) done.insert(piece.line);
    }
  }
  EXPECT_EQ(done.size(), texts.size());
  return texts;
}

Texts Undisturbed() {
  static const Texts texts = [] {
    TestCluster cluster(2);
    cluster.Start(WritingJob()).End(JobPhase::kSucceeded);
    return TextsOf(cluster.Records(kJob));
  }();
  return texts;
}

TEST(WritingTest, WritesEveryLineAndTrainsNothing) {
  TestCluster cluster(2);
  cluster.Start(WritingJob()).End(JobPhase::kSucceeded);
  EXPECT_THAT(cluster.violations, IsEmpty());
  EXPECT_EQ(TextsOf(cluster.Records(kJob)).size(), 10u);
  const JobView view = cluster.View(kJob);
  EXPECT_EQ(view.step, 3u);
  EXPECT_EQ(view.total_steps, 3);
  EXPECT_EQ(view.weights_digest, "");
  EXPECT_GT(view.tokens_per_second, 0);
  EXPECT_EQ(cluster.profiles, 0);
  EXPECT_THAT(cluster.Saved(), IsEmpty());
  EXPECT_THAT(cluster.optimizer_steps, IsEmpty());
  // The stages are free again.
  cluster.Start(SmallJob(2), "other").Digest("other");
}

TEST(WritingTest, PeopleSeeTheFirstTokensBeforeTheRestAndQuickStagesAreAskedSeldom) {
  TestCluster cluster(2);
  cluster.step_seconds = 0.01;
  cluster.Start(WritingJob()).End(JobPhase::kSucceeded);
  std::vector<const JobRecord*> written;
  for (const JobRecord& record : cluster.Records(kJob)) {
    if (record.kind == JobRecord::Kind::kWritten) written.push_back(&record);
  }
  ASSERT_FALSE(written.empty());
  for (const WrittenPiece& piece : written[0]->written) EXPECT_EQ(piece.text.size(), 1u);
  EXPECT_EQ(TextsOf(cluster.Records(kJob)), Undisturbed());
  EXPECT_LE(written.size(), 10u) << "a mini-batch has texts of about 20 tokens";
}

// Calls `work` at every n-th event of a job that writes, in a new cluster.
void AtEveryEventOfWriting(int stride, const std::function<void(TestCluster&)>& work) {
  TestCluster golden(2);
  golden.Start(WritingJob()).End(JobPhase::kSucceeded);
  const int events = golden.events();
  for (int at = 3; at < events - 2 && !::testing::Test::HasFailure(); at += stride) {
    SCOPED_TRACE(absl::StrCat("at event ", at));
    TestCluster cluster(2);
    cluster.Start(WritingJob());
    while (cluster.events() < at) cluster.Step();
    work(cluster);
    cluster.End(JobPhase::kSucceeded);
    EXPECT_THAT(cluster.violations, IsEmpty());
    EXPECT_EQ(TextsOf(cluster.Records(kJob)), Undisturbed());
  }
}

TEST(WritingTest, LossesOfStagesChangeNoText) {
  for (const int lost : {0, 1}) {
    AtEveryEventOfWriting(kSanitized ? 61 : 5,
                          [lost](TestCluster& cluster) { cluster.ReplaceStage(lost); });
  }
}

TEST(WritingTest, ACoordinatorThatIsStartedAnewChangesNoText) {
  AtEveryEventOfWriting(kSanitized ? 61 : 5,
                        [](TestCluster& cluster) { cluster.RestartCoordinator(); });
}

TEST(WritingTest, ACoordinatorThatDrainsEndsTheCommandAndTheNextOneGoesOn) {
  AtEveryEventOfWriting(kSanitized ? 61 : 5, [](TestCluster& cluster) {
    const uint64_t before = cluster.View(kJob).step;
    bool drained = false;
    cluster.loop().Drain(true, [&] { drained = true; });
    ASSERT_TRUE(cluster.RunUntil([&] { return drained; }, 10));
    EXPECT_LE(cluster.View(kJob).step, before + 1);
    cluster.RestartCoordinator();
    EXPECT_GE(cluster.View(kJob).step, before) << "what is written stays so";
  });
}

TEST(WritingTest, AMiniBatchThatIsDoneIsNotWrittenAgain) {
  TestCluster cluster(2);
  cluster.Start(WritingJob()).UntilStep(2);
  std::set<uint64_t> batches;
  cluster.run_fault = [&batches](int, const RunCommand& command) {
    batches.insert(command.evaluation_batch);
    return absl::OkStatus();
  };
  cluster.ReplaceStage(1);
  cluster.UntilRecovery(1).End(JobPhase::kSucceeded);
  EXPECT_EQ(batches, std::set<uint64_t>{2});
}

TEST(WritingTest, TakesTheWeightsAloneOfAnotherJob) {
  TestCluster cluster(2);
  cluster.Start().Digest();
  JobSpec spec = WritingJob();
  spec.initialize = {};
  spec.resume.job = kJob;
  cluster.Start(spec, "written").UntilStep(1, "written");
  for (const int k : {0, 1}) {
    const LoadCommand& command = cluster.stage(k).command;
    EXPECT_EQ(command.fence.step, 7u) << "as the checkpoint has it";
    EXPECT_TRUE(command.fresh_optimizer);
    EXPECT_THAT(command.checkpoint_folder, HasSubstr(kJob));
  }
  cluster.ReplaceStage(0);
  cluster.End(JobPhase::kSucceeded, "written");
  const Texts trained = TextsOf(cluster.Records("written"));
  EXPECT_EQ(trained.size(), 10u);
  EXPECT_NE(trained.at(0), Undisturbed().at(0)) << "these are the initial weights'";
  EXPECT_EQ(cluster.View("written").step, 3u);
  EXPECT_FALSE(cluster.View("written").has_loss) << "that would be the other job's";
  EXPECT_THAT(cluster.violations, IsEmpty());
}

TEST(WritingTest, AHeldJobGoesOnWhenItIsResumed) {
  JobManagerOptions options;
  options.hold_jobs = true;
  TestCluster cluster(3, options);
  cluster.Start(WritingJob()).UntilStep(1).RestartCoordinator();
  ASSERT_EQ(cluster.Phase(), JobPhase::kHeld);
  ASSERT_TRUE(cluster.loop().Resume(kJob, 3).ok());
  cluster.End(JobPhase::kSucceeded);
  EXPECT_EQ(TextsOf(cluster.Records(kJob)), Undisturbed()) << "for every number of stages";
}

// Texts piled up in memory for as long as the disk was full.
class FullJournalWritingTest : public WholeJobsTest {
 protected:
  // In the second mini-batch.
  void RunUntilFull() {
    options_.max_unwritten_text_bytes = 1000;
    Begin(3).Start(WritingJob()).UntilStep(1).Wait(0.2);
    cluster_->run_fault = [this](int, const RunCommand&) {
      ++commands_;
      return absl::OkStatus();
    };
    Set(MemoryDisk::State::kFull);
    cluster_->Wait(100);
    before_ = commands_;
    cluster_->Wait(300);
  }
  void Set(MemoryDisk::State state) { cluster_->disk().Set(state); }
  void EndWithRoom() {
    Set(MemoryDisk::State::kGood);
    cluster_->UntilPhase(JobPhase::kSucceeded);
    EXPECT_EQ(TextsOf(Kept()), Undisturbed());
    uint64_t number = 0;
    for (const JobRecord& record : Kept()) EXPECT_EQ(record.number, ++number);
    EXPECT_THAT(cluster_->violations, IsEmpty());
  }
  // Watches ended when the journal could not be written.
  std::vector<JobRecord> Kept() {
    std::vector<JobRecord> records;
    while (true) {
      const uint64_t last = records.empty() ? 0 : records.back().number;
      const auto page = cluster_->loop().Records(kJob, last, JobLoop::kRecordsPerPump);
      if (!page.ok() || page->empty()) return records;
      records.insert(records.end(), page->begin(), page->end());
    }
  }

  int commands_ = 0, before_ = 0;  // of both stages
};

TEST_F(FullJournalWritingTest, TheJobWaitsBetweenTwoCommandsAndGoesOnWithRoom) {
  RunUntilFull();
  EXPECT_GT(commands_, 0);
  EXPECT_LT(commands_, 16) << "a command has about 260 bytes";
  EXPECT_EQ(commands_, before_);
  EXPECT_THAT(cluster_->Message(), HasSubstr("writes on from mini-batch 1"));
  EndWithRoom();
  EXPECT_EQ(cluster_->View(kJob).recoveries, 0u) << "no stage was late";
  for (const JobRecord& record : Kept()) {
    EXPECT_LT(record.step_seconds, 1) << "the wait is no command's time";
  }
}

TEST_F(FullJournalWritingTest, ALossMeanwhileIsARecoveryAndTheJobWaitsAgain) {
  RunUntilFull();
  cluster_->ReplaceStage(0);
  cluster_->Wait(100);
  EXPECT_EQ(cluster_->loop().ListStages().size(), 3u);
  EXPECT_EQ(commands_, before_);
  EndWithRoom();
  EXPECT_EQ(cluster_->View(kJob).recoveries, 1u);
}

TEST_F(FullJournalWritingTest, ACancelledJobSendsNothingMoreWithRoom) {
  RunUntilFull();
  EXPECT_TRUE(absl::IsFailedPrecondition(cluster_->Cancel(kJob)));
  Set(MemoryDisk::State::kGood);
  cluster_->UntilPhase(JobPhase::kCancelled).Wait(10);
  EXPECT_EQ(commands_, before_);
}

TEST_F(FullJournalWritingTest, ADrainDoesNotWaitForAJobThatWaits) {
  RunUntilFull();
  bool drained = false;
  cluster_->loop().Drain(true, [&] { drained = true; });
  EXPECT_TRUE(cluster_->RunUntil([&] { return drained; }, 10));
  Set(MemoryDisk::State::kGood);
  cluster_->RestartCoordinator();
  EndWithRoom();
}

TEST(WritingTest, IsCancelled) {
  TestCluster cluster(2);
  cluster.Start(WritingJob()).UntilStep(1);
  ASSERT_TRUE(cluster.Cancel(kJob).ok());
  EXPECT_EQ(cluster.End(JobPhase::kCancelled), "cancelled");
}

TEST(WritingTest, AStageThatHangsIsGivenUpAtTheDeadlineOfAFirstStep) {
  TestCluster cluster(3);
  cluster.Start(WritingJob()).UntilStep(1).stage(1).hung = true;
  const double before = cluster.now();
  cluster.UntilRecovery(1);
  EXPECT_NEAR(cluster.now() - before, JobLimits{}.first_step_deadline_seconds, 10);
  cluster.stage(1).hung = false;
  cluster.End(JobPhase::kSucceeded);
  EXPECT_EQ(TextsOf(cluster.Records(kJob)), Undisturbed());
}

}  // namespace
}  // namespace stagecoach
