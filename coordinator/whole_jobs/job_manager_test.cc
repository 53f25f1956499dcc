// The threads around the job loop: everything here runs on real threads and real time, without
// sleeps.
#include "coordinator/loop/job_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/testing/manual_clock.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/thread.h"
#include "checkpoint/folder_probe.h"
#include "coordinator/loop/mailbox.h"
#include "coordinator/loop/silent_stages_testing.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(60);

// Answers every command from a thread of its own, with zeros.
class AnsweringStages final : public SilentStages {
 public:
  AnsweringStages() : thread_("stages", [this] { Answer(); }) {}
  ~AnsweringStages() override {
    mailbox_.Close();
    thread_.Join();
  }

  void Load(const StagePeer& stage, const LoadCommand& command, double,
            std::function<void(absl::StatusOr<LoadResult>)> done) override {
    mailbox_.Post([this, address = stage.address, command, done] {
      loaded_[address] = command;
      LoadResult result{.data = {100, "data", 10, 5}, .fingerprint = "f"};
      result.folder =
          AnswerFolderProbe(*PosixFileSystem(), command.probe_folder, command.stage.value);
      done(result);
    });
  }
  void Run(const StagePeer& stage, const RunCommand& command, double,
           std::function<void(absl::StatusOr<StepReport>)> done) override {
    mailbox_.Post([this, address = stage.address, command, done] {
      if (hold_steps.load()) {
        held_.push_back(done);
        return;
      }
      const LoadCommand& loaded = loaded_.at(address);
      StepReport report;
      report.fence = command.fence;
      report.applied = command.apply;
      report.layer_squared_norms.assign(Layers(loaded).size(), 0.1);
      report.has_loss = loaded.stage.value + 1 == loaded.partition.stages();
      report.loss_sum = 1;
      report.targets = 16;
      report.terms = 16;
      done(report);
    });
  }
  void WriteShard(const StagePeer& stage, const WriteShardCommand& command, double,
                  std::function<void(absl::StatusOr<ShardInfo>)> done) override {
    mailbox_.Post([this, address = stage.address, command, done] {
      const LoadCommand& loaded = loaded_.at(address);
      done(WriteLayers(*PosixFileSystem(), loaded, command.folder, Layers(loaded)));
    });
  }
  void FindSnapshots(const StagePeer&, const std::string&, const std::string&, double,
                     std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) override {
    mailbox_.Post([done] { done(std::vector<HeldShard>()); });
  }

  std::atomic<bool> hold_steps{false};

 private:
  static std::map<int, float> Layers(const LoadCommand& loaded) {
    std::map<int, float> layers;
    const int k = loaded.stage.value;
    for (int l = loaded.partition.first(k); l < loaded.partition.last(k, 7); ++l) layers[l] = 0;
    return layers;
  }
  void Answer() {
    std::vector<Mailbox::Work> work;
    while (mailbox_.Take(std::chrono::seconds(1), &work)) {
      for (Mailbox::Work& one : work) one();
    }
    // Late answers, perhaps to a coordinator that is gone: harmless.
    for (const auto& done : held_) done(absl::CancelledError("late"));
  }

  Mailbox mailbox_;
  std::map<std::string, LoadCommand> loaded_;  // stages' thread only, as held_
  std::vector<std::function<void(absl::StatusOr<StepReport>)>> held_;
  Thread thread_;
};

class JobManagerTest : public ::testing::Test {
 protected:
  JobManagerTest() : store_(PosixFileSystem(), folder_.File("checkpoints")) {
    options_.lease_seconds = 600;  // hardly anybody renews here
  }

  absl::StatusOr<std::unique_ptr<JobManager>> Start(const Clock* clock = SystemClock::Get()) {
    options_.state_folder = folder_.File("state");
    return JobManager::Start(options_, {&stages_, &store_, PosixFileSystem(), &codec_, clock});
  }

  // Calls and waits for the answer.
  template <typename T>
  static T Wait(const std::function<void(std::function<void(T)>)>& call) {
    auto answer = std::make_shared<std::promise<T>>();
    std::future<T> result = answer->get_future();
    call([answer](T value) { answer->set_value(std::move(value)); });
    EXPECT_EQ(result.wait_for(kPatience), std::future_status::ready) << "no answer";
    return result.get();
  }

  static void Register(JobManager& manager, int stages) {
    for (int i = 0; i < stages; ++i) {
      StageRegistration stage;
      stage.name = absl::StrCat("stage-", i);
      stage.incarnation = "1";
      stage.address = absl::StrCat("host-", i);
      EXPECT_TRUE(Wait<absl::StatusOr<LeaseGrant>>([&](auto done) {
                    manager.RegisterStage(stage, done);
                  }).ok());
    }
  }

  static absl::StatusOr<JobView> Submit(JobManager& manager, const std::string& id) {
    return Wait<absl::StatusOr<JobView>>([&](auto done) { manager.Submit(id, SmallJob(2), done); });
  }

  static absl::Status WatchToEnd(JobManager& manager, const std::string& id,
                                 std::vector<JobRecord>* records) {
    return Wait<absl::Status>([&](auto done) {
      manager.Watch(
          id, 0,
          [records](const JobRecord& record) {
            records->push_back(record);
            return true;
          },
          done);
    });
  }

  static void Renew(JobManager& manager, const std::string& name,
                    std::promise<absl::Status>& answer) {
    StageHeartbeat heartbeat;
    heartbeat.name = name;
    heartbeat.incarnation = "1";
    manager.RenewLease(heartbeat, [&answer](const absl::StatusOr<LeaseGrant>& grant) {
      answer.set_value(grant.status());
    });
  }

  const TemporaryFolder folder_;
  CheckpointStore store_;
  ListCodec codec_;
  JobManagerOptions options_;
  AnsweringStages stages_;
};

TEST_F(JobManagerTest, RunsJobsFromManyClientsAtOnce) {
  std::unique_ptr<JobManager> manager = Start().value();
  Register(*manager, 4);
  std::vector<std::future<JobRecord>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::async(std::launch::async, [&manager, i] {
      const std::string id = absl::StrCat("job-", i);
      EXPECT_TRUE(Submit(*manager, id).ok());
      std::vector<JobRecord> records;
      EXPECT_TRUE(WatchToEnd(*manager, id, &records).ok());
      return records.back();
    }));
  }
  for (std::future<JobRecord>& client : clients) {
    const JobRecord last = client.get();
    EXPECT_EQ(last.kind, JobRecord::Kind::kFinished);
    EXPECT_EQ(last.phase, JobPhase::kSucceeded) << last.message;
    EXPECT_THAT(last.weights_digest, HasSubstr("sha256:"));
  }
  using Jobs = absl::StatusOr<std::vector<JobView>>;
  EXPECT_EQ(Wait<Jobs>([&](auto done) { manager->List(done); }).value().size(), 4u);
  EXPECT_EQ(Wait<std::vector<StageView>>([&](auto done) { manager->ListStages(done); }).size(), 4u);
  EXPECT_TRUE(
      Wait<absl::StatusOr<Plan>>([&](auto done) { manager->PlanJob(SmallJob(0), done); }).ok());
  EXPECT_TRUE(absl::IsNotFound(
      Wait<absl::StatusOr<JobView>>([&](auto done) { manager->Cancel("nobody", done); }).status()));
}

// The story: the line of answers had no end, so whoever asked for a large job that had ended, again
// and again, had the coordinator hold its text as often.
TEST_F(JobManagerTest, LongAnswersWaitInALineThatHasAnEnd) {
  std::unique_ptr<JobManager> manager = Start().value();
  Register(*manager, 2);
  ASSERT_TRUE(Submit(*manager, "ended").ok());
  std::vector<JobRecord> records;
  ASSERT_TRUE(WatchToEnd(*manager, "ended", &records).ok());
  std::promise<void> entered, leave;
  manager->Get("ended", [&](const absl::StatusOr<JobView>&) {
    entered.set_value();
    leave.get_future().wait();
  });
  entered.get_future().wait();
  constexpr int kAsked = 300;
  std::mutex mutex;
  std::condition_variable changed;
  int answered = 0, refused = 0;
  const auto count = [&](const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex);
    ++answered;
    if (absl::IsResourceExhausted(status)) ++refused;
    changed.notify_all();
  };
  for (int i = 0; i < kAsked; ++i) {
    manager->Get("ended", [&](const absl::StatusOr<JobView>& view) { count(view.status()); });
    manager->ListPage(0, 1000,
                      [&](const absl::StatusOr<JobManager::Page>& page) { count(page.status()); });
  }
  const auto wait_for = [&](const std::function<bool()>& so) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, kPatience, so);
  };
  EXPECT_TRUE(wait_for([&] { return refused >= 2 * kAsked - 100; })) << refused;
  using Jobs = absl::StatusOr<std::vector<JobView>>;
  const Jobs listed = Wait<Jobs>([&](auto done) { manager->List(done); });
  EXPECT_TRUE(absl::IsResourceExhausted(listed.status())) << "not a list without jobs";
  leave.set_value();
  EXPECT_TRUE(wait_for([&] { return answered == 2 * kAsked; })) << "and everyone is answered";
  EXPECT_TRUE(Wait<absl::StatusOr<JobView>>([&](auto done) { manager->Get("ended", done); }).ok());
}

// Symptom: `resume` through the page of several runs said "has no checkpoint to go on from".
TEST_F(JobManagerTest, CopiesOfJobsSayWhereTheirCheckpointsAre) {
  options_.only_shows = true;
  const auto manager = Start().value();
  const auto pinned = Wait<absl::StatusOr<std::shared_ptr<const void>>>(
      [&](auto done) { manager->PinCheckpoints("a", done); });
  EXPECT_THAT(pinned.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("stagecoach resume JOB --state-dir FOLDER")));
  EXPECT_EQ(Submit(*manager, "a").status(), pinned.status());
}

TEST_F(JobManagerTest, RefusesASecondCoordinatorOnOneStateFolder) {
  std::unique_ptr<JobManager> first = Start().value();
  const uint64_t term = first->term();
  EXPECT_GT(term, 1'700'000'000u) << "by the clock: above all terms of a copy of the journal";
  EXPECT_THAT(Start().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(folder_.File("state"))));
  first.reset();
  EXPECT_GT(Start().value()->term(), term);
}

// Symptom: a journal was put back within a second of the coordinator's last start, and the next one
// took the same term: a stage answered its load as one that it had done already, without looking at
// the folder of checkpoints, and the job ended as FAILED for a folder that it saw. Found by the
// simulator.
TEST_F(JobManagerTest, ACopyOfTheJournalGivesNoTermOfTheSameSecondTwice) {
  ManualClock clock(int64_t{1'750'000'000} * 1'000'000'000);
  const std::string journal = folder_.File("state/journal.sqlite"),
                    copy = folder_.File("copy.sqlite");
  Start(&clock).value().reset();
  std::filesystem::copy(journal, copy);
  clock.AdvanceNanos(300'000'000);
  const uint64_t used = Start(&clock).value()->term();
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(journal + suffix);
  std::filesystem::copy(copy, journal);
  clock.AdvanceNanos(300'000'000);
  EXPECT_GT(Start(&clock).value()->term(), used);
}

TEST_F(JobManagerTest, AnswersEveryoneAtShutdownAndTakesTheJobUpAgain) {
  stages_.hold_steps = true;
  std::unique_ptr<JobManager> manager = Start().value();
  Register(*manager, 2);
  ASSERT_TRUE(Submit(*manager, "a").ok());
  std::vector<JobRecord> seen;
  std::future<absl::Status> watch = std::async(std::launch::async, [&] {
    return Wait<absl::Status>([&](auto done) {
      manager->Watch(
          "a", 0,
          [&](const JobRecord& record) {
            seen.push_back(record);
            return true;
          },
          done);
    });
  });
  manager->Watch(
      "a", 0, [](const JobRecord&) { return true; }, [](const absl::Status&) {});
  manager->Shutdown();
  const absl::Status ended = watch.get();
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_TRUE(absl::IsUnavailable(Submit(*manager, "b").status())) << "refused, not forgotten";
  manager->Unwatch(1);
  manager.reset();

  stages_.hold_steps = false;
  manager = Start().value();
  Register(*manager, 2);
  std::vector<JobRecord> records;
  ASSERT_TRUE(WatchToEnd(*manager, "a", &records).ok());
  EXPECT_EQ(records.back().phase, JobPhase::kSucceeded) << records.back().message;
  EXPECT_GE(records.size(), seen.size());
}

TEST_F(JobManagerTest, LosesASilentStageInRealTime) {
  options_.lease_seconds = 0.05;
  std::unique_ptr<JobManager> manager = Start().value();
  Register(*manager, 1);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  StageState state = StageState::kReady;
  while (state != StageState::kLost && std::chrono::steady_clock::now() < end) {
    state = Wait<std::vector<StageView>>([&](auto done) { manager->ListStages(done); })[0].state;
  }
  EXPECT_EQ(state, StageState::kLost);
  std::promise<absl::Status> renewed;
  Renew(*manager, "stage-0", renewed);
  EXPECT_TRUE(absl::IsNotFound(renewed.get_future().get()));
}

// Heartbeats come in while the loop's thread is held up (busy_loop_test.cc).
TEST_F(JobManagerTest, HeartbeatsCountFromWhenTheyArrive) {
  ManualClock clock;
  options_.lease_seconds = 1.5;
  std::unique_ptr<JobManager> manager = Start(&clock).value();
  Register(*manager, 1);
  std::promise<void> busy, go_on;
  manager->Get("nobody", [&](const absl::StatusOr<JobView>&) {
    busy.set_value();
    go_on.get_future().wait();
  });
  busy.get_future().wait();
  std::vector<std::promise<absl::Status>> renewed(20);
  for (std::promise<absl::Status>& answer : renewed) {
    clock.AdvanceNanos(500'000'000);
    Renew(*manager, "stage-0", answer);
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

// A lease was ended by the time of another stage's heartbeat while its own, with an earlier stamp,
// had not been posted yet.
TEST_F(JobManagerTest, AHeartbeatBetweenItsStampAndItsPostEndsNoLease) {
  HaltingClock clock;
  options_.lease_seconds = 1.5;
  std::unique_ptr<JobManager> manager = Start(&clock).value();
  Register(*manager, 2);
  std::promise<absl::Status> early, late, held;
  clock.time.AdvanceNanos(1'000'000'000);
  Renew(*manager, "stage-1", early);
  ASSERT_TRUE(early.get_future().get().ok());
  std::future<absl::Status> late_answer = late.get_future();
  Thread other;
  clock.meanwhile = [&] {
    clock.time.AdvanceNanos(600'000'000);
    other = Thread("other", [&] { Renew(*manager, "stage-1", late); });
    late_answer.wait_for(std::chrono::milliseconds(100));  // answered if it may overtake
  };
  Renew(*manager, "stage-0", held);
  other.Join();
  const absl::Status status = held.get_future().get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(late_answer.get().ok());
}

}  // namespace
}  // namespace stagecoach
