// WaitingJobTest: a real job manager with one job, "job-a", that waits for stages that never come;
// for tests of code in front of the manager.
#ifndef STAGECOACH_SERVICES_COORDINATOR_API_WAITING_JOB_TESTING_H_
#define STAGECOACH_SERVICES_COORDINATOR_API_WAITING_JOB_TESTING_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/files/hash.h"
#include "base/testing/manual_clock.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/shard.h"
#include "checkpoint/store/store.h"
#include "coordinator/journal/journal.h"
#include "coordinator/loop/job_manager.h"
#include "coordinator/loop/silent_stages_testing.h"
#include "network/zoo/gpt.h"
#include "plan/data/text.h"
#include "plan/learning_rates/constant.h"
#include "plan/optimizers/sgd.h"
#include "services/common/observe/log_ring.h"
#include "services/coordinator/api/job_service.h"
#include "services/coordinator/convert/job_codec.h"
#include "services/coordinator/testing/fake_stage_observer.h"
#include "services/coordinator/watch/await.h"
#include "services/coordinator/watch/trace_collector.h"

namespace stagecoach {

inline constexpr double kPatience = 30;

inline JobSpec SmallSpec() {
  JobSpec spec;
  spec.name = "small";
  spec.network = GptSpec{2, 16, 2, 8, 64, 0};
  spec.data = TextData{.path = "/nowhere/input.txt"};
  spec.training.steps = 10;
  spec.training.batch_size = 4;
  spec.training.micro_batches = 2;
  spec.training.optimizer = SgdSpec{};
  spec.training.learning_rate = ConstantRate{.peak = 0.1};
  spec.pipeline.stages = 2;
  return spec;
}

class WaitingJobTest : public ::testing::Test {
 protected:
  WaitingJobTest() : store_(PosixFileSystem(), folder_.File("checkpoints")) {
    JobManagerOptions options;
    options.state_folder = folder_.File("state");
    options.lease_seconds = 600;
    manager_ = JobManager::Start(options, {.stages = &stages_,
                                           .checkpoints = &store_,
                                           .file_system = PosixFileSystem(),
                                           .codec = &codec_,
                                           .clock = SystemClock::Get()})
                   .value();
    const auto view = Await<absl::StatusOr<JobView>>(
        kPatience, [&](auto done) { manager_->Submit("job-a", SmallSpec(), done); });
    EXPECT_TRUE(view.has_value() && view->ok());
    Settle();
  }
  ~WaitingJobTest() override { manager_.reset(); }

  // Waits until the job says that it waits for stages: then nothing more happens by itself.
  void Settle() {
    const auto settled = Await<bool>(kPatience, [this](auto done) {
      manager_->Watch(
          "job-a", 0,
          [done](const JobRecord& record) {
            const bool waits = record.message.find("waits for 2") != std::string::npos;
            if (waits) done(true);
            return !waits;
          },
          [](const absl::Status&) {});
    });
    EXPECT_TRUE(settled.has_value());
  }

  void CommitEmptyCheckpoint(const std::string& job, uint64_t step) {
    const absl::StatusOr<std::string> folder = store_.Begin(job, 1, step, 0);
    ASSERT_TRUE(folder.ok()) << folder.status();
    const absl::StatusOr<ShardInfo> shard = WriteShard(*PosixFileSystem(), *folder, {{0, 1}}, {});
    ASSERT_TRUE(shard.ok()) << shard.status();
    Manifest manifest;
    manifest.job = job;
    manifest.model_sha256 = manifest.dataset_sha256 = Sha256Hex("");
    manifest.state.step = step;
    manifest.term = 1;
    manifest.stages = 1;
    manifest.shards = {*shard};
    const absl::StatusOr<CheckpointRef> ref = store_.Commit(*folder, manifest, {});
    ASSERT_TRUE(ref.ok()) << ref.status();
  }

  // So many records with texts, a MiB for four, as if the job had written them.
  void AddLongTexts(int count) {
    std::unique_ptr<Journal> journal = Journal::Open(folder_.File("state/journal.sqlite")).value();
    JournalUpdate update{.job = "job-a"};
    const absl::Status read = journal->EachJob([&update](const JournalJob& job) {
      update.state = job.id == "job-a" ? job.state : update.state;
    });
    ASSERT_TRUE(read.ok()) << read;
    uint64_t number = journal->LastNumber("job-a").value();
    for (int i = 0; i < count; ++i) {
      JobRecord& record = update.records.emplace_back();
      record.number = ++number;
      record.kind = JobRecord::Kind::kWritten;
      record.written = {{.line = i, .text = std::string(size_t{1} << 18, 'a')}};
    }
    const absl::Status written = journal->Write({&update, 1});
    ASSERT_TRUE(written.ok()) << written;
  }

  JobServiceAdapter::Parts ServiceParts() {
    return {.manager = manager_.get(),
            .checkpoints = &store_,
            .file_system = PosixFileSystem(),
            .codec = &codec_,
            .export_folder = folder_.File("exports"),
            .record_folder = folder_.File("state/jobs"),
            .grants = &grants_,
            .stages = &observer_,
            .traces = &traces_,
            .log = &ring_};
  }

  const TemporaryFolder folder_;
  const ObjectGrants grants_;
  CheckpointStore store_;
  ProtoJobCodec codec_;
  SilentStages stages_;
  ManualClock clock_;
  FakeStageObserver observer_{&clock_};
  TraceCollector traces_{&observer_, &clock_};
  LogRing ring_{100};
  std::unique_ptr<JobManager> manager_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_API_WAITING_JOB_TESTING_H_
