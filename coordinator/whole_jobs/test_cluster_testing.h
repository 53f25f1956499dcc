// TestCluster: a SimulatedCluster with the steps that tests of whole jobs share, and the
// undisturbed run of SmallJob(2) that every run of it with faults must equal. A call without an id
// means the job kJob. If a step waits in vain, the test fails.
#ifndef STAGECOACH_COORDINATOR_WHOLE_JOBS_TEST_CLUSTER_TESTING_H_
#define STAGECOACH_COORDINATOR_WHOLE_JOBS_TEST_CLUSTER_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {

inline constexpr char kJob[] = "small-1";

// Results that must not depend on stages, faults and recoveries: weights, and each step's loss.
struct Outcome {
  std::string digest;
  std::map<uint64_t, double> losses, evaluations;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

inline Outcome OutcomeOf(const std::vector<JobRecord>& records) {
  Outcome outcome;
  for (const JobRecord& record : records) {
    if (record.kind == JobRecord::Kind::kStep) outcome.losses[record.step] = record.loss;
    if (record.kind == JobRecord::Kind::kEvaluation) outcome.evaluations[record.step] = record.loss;
    if (record.kind == JobRecord::Kind::kFinished) outcome.digest = record.weights_digest;
  }
  return outcome;
}

struct Undisturbed {
  Outcome outcome;
  int events = 0;
};
const Undisturbed& Golden();  // run once

class TestCluster : public SimulatedCluster {
 public:
  using SimulatedCluster::SimulatedCluster;

  TestCluster& Start(const JobSpec& spec = SmallJob(2), const std::string& id = kJob) {
    const absl::Status status = Submit(id, spec).status();
    EXPECT_TRUE(status.ok()) << status;
    return *this;
  }
  TestCluster& Until(const std::function<bool(const JobView&)>& holds, double seconds = 1000,
                     const std::string& id = kJob) {
    EXPECT_TRUE(RunUntil([&] { return holds(View(id)); }, seconds)) << Message(id);
    return *this;
  }
  TestCluster& UntilPhase(JobPhase phase, const std::string& id = kJob) {
    return Until([phase](const JobView& view) { return view.phase == phase; }, 1000, id);
  }
  TestCluster& UntilStep(uint64_t step, const std::string& id = kJob) {
    return Until([step](const JobView& view) { return view.step == step; }, 1000, id);
  }
  TestCluster& UntilSaved(int64_t step, const std::string& id = kJob) {
    return Until([step](const JobView& view) { return view.last_checkpoint_step == step; }, 1e5,
                 id);
  }
  TestCluster& UntilRecovery(uint64_t number, double seconds = 1000) {
    return Until([number](const JobView& view) { return view.recoveries == number; }, seconds);
  }
  TestCluster& Wait(double seconds) {
    const double end = now() + seconds;
    RunUntil([&] { return now() > end; }, seconds + 1);
    return *this;
  }
  void RestartCoordinator() {
    CrashCoordinator();
    StartCoordinator();
  }
  void ReplaceStage(int number) {  // by a new process
    KillStage(number);
    RestartStage(number);
  }

  JobPhase Phase(const std::string& id = kJob) { return View(id).phase; }
  std::string Message(const std::string& id = kJob) { return View(id).message; }
  std::string History(const std::string& id = kJob) const {
    std::string messages;
    for (const JobRecord& record : Records(id)) absl::StrAppend(&messages, record.message, "\n");
    return messages;
  }
  // The name of the stage in this place of the job.
  std::string StageAt(size_t place, const std::string& id = kJob) {
    const std::vector<StageAssignment> stages = View(id).stages;
    return place < stages.size() ? stages[place].stage_name : "";
  }
  std::vector<std::string> Saved(const std::string& id = kJob) {  // in its folder of checkpoints
    return files().List(absl::StrCat("/checkpoints/", id)).value_or(std::vector<std::string>{});
  }

  // The job must end in this phase; its message.
  std::string End(JobPhase phase, const std::string& id = kJob, double seconds = 1000) {
    EXPECT_TRUE(RunToEnd(id, seconds)) << id << ": " << Message(id);
    EXPECT_EQ(Phase(id), phase) << id << ": " << Message(id);
    return Message(id);
  }
  std::string Failure(const std::string& id = kJob, double seconds = 1000) {
    return End(JobPhase::kFailed, id, seconds);
  }
  // The job must succeed; its weights.
  std::string Digest(const std::string& id = kJob, double seconds = 1000) {
    End(JobPhase::kSucceeded, id, seconds);
    EXPECT_THAT(violations, ::testing::IsEmpty()) << id;
    return View(id).weights_digest;
  }
  void ExpectGoldenEnd(const std::string& what = "", const std::string& id = kJob) {
    SCOPED_TRACE(what);
    Digest(id);
    EXPECT_EQ(OutcomeOf(Records(id)), Golden().outcome);
    uint64_t number = 0;
    for (const JobRecord& record : Records(id)) EXPECT_EQ(record.number, ++number);
  }
};

// For tests that make their cluster late, or more than one.
class WholeJobsTest : public ::testing::Test {
 protected:
  TestCluster& Begin(int stages = 2) {
    cluster_ = std::make_unique<TestCluster>(stages, options_);
    return *cluster_;
  }

  JobManagerOptions options_;
  std::unique_ptr<TestCluster> cluster_;
};

inline const Undisturbed& Golden() {
  static const Undisturbed golden = [] {
    TestCluster cluster(2);
    cluster.Start().Digest();
    return Undisturbed{OutcomeOf(cluster.Records(kJob)), cluster.events()};
  }();
  return golden;
}

// Calls `work` at every n-th event of the undisturbed run, in a new cluster, until a run fails.
inline void AtEveryEvent(int stride, const std::function<void(TestCluster&, int at)>& work) {
  for (int at = 3; at < Golden().events - 2 && !::testing::Test::HasFailure(); at += stride) {
    SCOPED_TRACE(absl::StrCat("at event ", at));
    TestCluster cluster(2);
    cluster.Start();
    while (cluster.events() < at) cluster.Step();
    work(cluster, at);
  }
}

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_WHOLE_JOBS_TEST_CLUSTER_TESTING_H_
