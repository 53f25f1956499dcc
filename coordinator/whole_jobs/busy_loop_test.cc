// Symptom: a disk that stalled for some seconds while the journal was written, or a large job being
// planned, cost every job of the cluster a recovery: all leases had "ended", and steps whose answers
// had long come were "overdue". Cause: leases and deadlines were judged by the moment at which the
// job loop got round to it, not by the moments at which heartbeats and answers arrived, and the time
// before a command went out counted as the stages'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "base/testing/manual_clock.h"
#include "base/thread.h"
#include "coordinator/journal/slow_disk_testing.h"
#include "coordinator/loop/silent_stages_testing.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::IsEmpty;

// Longer than leases (1.5 s), a step's deadline (60 s) and what a queued job is given (20 s).
constexpr double kStallSeconds = 200;

struct BusyOutcome {
  std::string digest;
  std::vector<uint64_t> numbers;
  std::map<uint64_t, double> losses;
  friend bool operator==(const BusyOutcome&, const BusyOutcome&) = default;
};

BusyOutcome RunTwoJobs(SimulatedCluster& cluster) {
  for (const char* id : {"a", "b"}) EXPECT_TRUE(cluster.Submit(id, SmallJob(2)).ok());
  BusyOutcome outcome;
  for (const char* id : {"a", "b"}) {
    EXPECT_TRUE(cluster.RunToEnd(id, 10000)) << cluster.View(id).message;
    const JobView view = cluster.View(id);
    EXPECT_EQ(view.phase, JobPhase::kSucceeded) << view.message;
    EXPECT_EQ(view.recoveries, 0u) << view.message;
    outcome.digest = view.weights_digest;
    for (const JobRecord& record : cluster.Records(id)) {
      outcome.numbers.push_back(record.number);
      if (record.kind == JobRecord::Kind::kStep) outcome.losses[record.step] = record.loss;
    }
  }
  for (const StageView& stage : cluster.loop().ListStages()) {
    EXPECT_NE(stage.state, StageState::kLost) << stage.registration.name;
  }
  EXPECT_THAT(cluster.violations, IsEmpty());
  return outcome;
}

TEST(BusyLoopTest, AStalledDiskExpiresNobodyAndLosesNothing) {
  int syncs = 0;
  SlowDisk disk;
  disk.on_sync = [&] { ++syncs; };
  BusyOutcome golden;
  int first = 0;
  {
    SimulatedCluster cluster(4);
    first = syncs;
    golden = RunTwoJobs(cluster);
  }
  const int last = syncs;
  ASSERT_GT(last, first + 20);
  for (int stalled = first + 1; stalled <= last; stalled += kSanitized ? 11 : 3) {
    syncs = 0;
    SimulatedCluster* stalling = nullptr;
    disk.on_sync = [&] {
      if (++syncs == stalled && stalling != nullptr) stalling->KeepLoopBusy(kStallSeconds);
    };
    SimulatedCluster cluster(4);
    stalling = &cluster;
    EXPECT_EQ(RunTwoJobs(cluster), golden) << "stalled at sync " << stalled;
    stalling = nullptr;
    if (::testing::Test::HasFailure()) return;
  }
}

// Who is really silent during the stall is lost after it, and not later.
TEST(BusyLoopTest, AStageThatFallsSilentDuringAStallIsLostAfterIt) {
  SlowDisk disk;
  SimulatedCluster cluster(3);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 2; }));
  bool stalled = false;
  disk.on_sync = [&] {
    if (std::exchange(stalled, true)) return;
    cluster.StopStage(1);
    cluster.KeepLoopBusy(kStallSeconds);
  };
  ASSERT_TRUE(cluster.RunUntil([&] { return stalled; }));
  const double end = cluster.now();
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").recoveries == 1; }));
  EXPECT_LE(cluster.now() - end, 2.0);
  EXPECT_THAT(cluster.View("a").message, ::testing::HasSubstr("stage-1 was silent"));
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded);
}

// A manager with its thread, and stages that are heard of and never used.
class LiveManager {
 public:
  LiveManager(const std::string& name, const Clock& clock)
      : folder_(absl::StrCat(::testing::TempDir(), "/", name, "-", getpid())),
        store_(PosixFileSystem(), folder_ + "/checkpoints") {
    std::filesystem::remove_all(folder_);
    JobManagerOptions options;
    options.state_folder = folder_ + "/state";
    options.lease_seconds = 1.5;
    manager_ =
        JobManager::Start(options, {&stages_, &store_, PosixFileSystem(), &codec_, &clock}).value();
  }
  ~LiveManager() {
    manager_.reset();
    std::filesystem::remove_all(folder_);
  }

  JobManager& manager() { return *manager_; }
  absl::Status Register(const std::string& name) {
    StageRegistration stage;
    stage.name = stage.address = name;
    stage.incarnation = "1";
    std::promise<absl::Status> registered;
    manager_->RegisterStage(stage, [&](const absl::StatusOr<LeaseGrant>& grant) {
      registered.set_value(grant.status());
    });
    return registered.get_future().get();
  }
  void Renew(const std::string& name, std::promise<absl::Status>& answer) {
    StageHeartbeat heartbeat;
    heartbeat.name = name;
    heartbeat.incarnation = "1";
    manager_->RenewLease(heartbeat, [&answer](const absl::StatusOr<LeaseGrant>& grant) {
      answer.set_value(grant.status());
    });
  }

 private:
  const std::string folder_;
  CheckpointStore store_;
  ListCodec codec_;
  SilentStages stages_;
  std::unique_ptr<JobManager> manager_;
};

// The same with threads: heartbeats come in while the loop's thread is held up.
TEST(BusyLoopTest, HeartbeatsCountFromWhenTheyArrive) {
  ManualClock clock;
  LiveManager live("busy-loop", clock);
  ASSERT_TRUE(live.Register("a").ok());

  std::promise<void> busy, go_on;
  live.manager().Get("nobody", [&](const absl::StatusOr<JobView>&) {
    busy.set_value();
    go_on.get_future().wait();
  });
  busy.get_future().wait();
  std::vector<std::promise<absl::Status>> renewed(20);
  for (std::promise<absl::Status>& answer : renewed) {
    clock.AdvanceNanos(500'000'000);
    live.Renew("a", answer);
  }
  go_on.set_value();
  for (std::promise<absl::Status>& answer : renewed) {
    const absl::Status status = answer.get_future().get();
    EXPECT_TRUE(status.ok()) << status;
  }
}

// Stands still in the middle of a reading, once, while something else happens.
class HaltingClock final : public Clock {
 public:
  int64_t MonotonicNanos() const override {
    const int64_t now = time.MonotonicNanos();
    if (std::this_thread::get_id() == thread) {
      if (const auto once = std::exchange(meanwhile, nullptr)) once();
    }
    return now;
  }
  int64_t UnixNanos() const override { return time.UnixNanos(); }
  ManualClock time;
  const std::thread::id thread = std::this_thread::get_id();
  mutable std::function<void()> meanwhile;  // that thread's
};

// A lease was ended by the time of another stage's heartbeat while its own, with an earlier stamp, had
// not been posted yet.
TEST(BusyLoopTest, AHeartbeatBetweenItsStampAndItsPostEndsNoLease) {
  HaltingClock clock;
  LiveManager live("busy-stamp", clock);
  for (const char* name : {"a", "b"}) ASSERT_TRUE(live.Register(name).ok());
  std::promise<absl::Status> early, late, held;
  clock.time.AdvanceNanos(1'000'000'000);
  live.Renew("b", early);
  ASSERT_TRUE(early.get_future().get().ok());
  std::future<absl::Status> late_answer = late.get_future();
  Thread other;
  clock.meanwhile = [&] {
    clock.time.AdvanceNanos(600'000'000);
    other = Thread("other", [&] { live.Renew("b", late); });
    late_answer.wait_for(std::chrono::milliseconds(100));  // answered if it may overtake
  };
  live.Renew("a", held);
  other.Join();
  const absl::Status status = held.get_future().get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(late_answer.get().ok());
}

}  // namespace
}  // namespace stagecoach
