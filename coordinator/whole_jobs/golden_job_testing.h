// The job of SmallJob on two simulated stages without faults, which every run of it with faults must equal.
#ifndef STAGECOACH_COORDINATOR_WHOLE_JOBS_GOLDEN_JOB_TESTING_H_
#define STAGECOACH_COORDINATOR_WHOLE_JOBS_GOLDEN_JOB_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {

inline constexpr char kJob[] = "small-1";

// Faults are put at every n-th event; odd, so that both stages are hit everywhere in time.
inline constexpr int kStride = kSanitized ? 23 : 3;

// What its folder of checkpoints has.
inline std::vector<std::string> StateFolders(SimulatedCluster& cluster) {
  return cluster.files()
      .List(absl::StrCat("/checkpoints/", kJob))
      .value_or(std::vector<std::string>{});
}

// What must not depend on stages, faults and recoveries: weights, and the loss of every step.
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

// The job of SmallJob on two stages without faults; run once.
inline const Undisturbed& Golden() {
  static const Undisturbed golden = [] {
    SimulatedCluster cluster(2);
    Undisturbed result;
    EXPECT_TRUE(cluster.Submit(kJob, SmallJob(2)).ok());
    EXPECT_TRUE(cluster.RunToEnd(kJob));
    result.outcome = OutcomeOf(cluster.Records(kJob));
    result.events = cluster.events();
    return result;
  }();
  return golden;
}

inline void ExpectGoldenEnd(SimulatedCluster& cluster, const std::string& what) {
  ASSERT_TRUE(cluster.RunToEnd(kJob)) << what << ": " << cluster.View(kJob).message;
  const JobView view = cluster.View(kJob);
  ASSERT_EQ(view.phase, JobPhase::kSucceeded) << what << ": " << view.message;
  EXPECT_EQ(OutcomeOf(cluster.Records(kJob)), Golden().outcome) << what;
  EXPECT_THAT(cluster.violations, ::testing::IsEmpty()) << what;
  uint64_t number = 0;
  for (const JobRecord& record : cluster.Records(kJob)) EXPECT_EQ(record.number, ++number) << what;
}

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_WHOLE_JOBS_GOLDEN_JOB_TESTING_H_
