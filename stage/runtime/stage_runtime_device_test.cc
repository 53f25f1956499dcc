// Runtimes with their threads on made-up cards.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/testing/runtime_fleet.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StageRuntimeDeviceTest : public ::testing::Test {
 protected:
  RuntimeFleet::Options OnCards() {
    RuntimeFleet::Options options{.stages = 3};
    options.make_backend = [this] {
      auto backend = std::make_unique<StagedBackend>(cards_.size() + 1);
      backend->api().run_per_query = 4;
      backend->UseClock(100);
      cards_.push_back(backend.get());
      return backend;
    };
    options.on_fault = [this](const absl::Status& reason) { faults_.push_back(reason); };
    return options;
  }

  std::vector<StagedBackend*> cards_;
  std::vector<absl::Status> faults_;  // of the one stage whose card breaks
};

TEST_F(StageRuntimeDeviceTest, TrainsOnCardsAsOnHosts) {
  RuntimeFleet hosts({.stages = 3});
  ASSERT_TRUE(hosts.LoadAll(1).ok());
  const auto expected = hosts.TrainSteps(1, 0, 4);
  RuntimeFleet cards(OnCards());
  ASSERT_TRUE(cards.LoadAll(1).ok());
  const auto losses = cards.TrainSteps(1, 0, 4);
  ASSERT_TRUE(expected.ok() && losses.ok()) << expected.status() << losses.status();
  EXPECT_EQ(*losses, *expected);
  for (const StagedBackend* card : cards_)
    EXPECT_TRUE(card->wakes()) << "a copy wakes the executor";
}

TEST_F(StageRuntimeDeviceTest, ReportsAddUpOnCardsToo) {
  RuntimeFleet fleet(OnCards());
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  const auto reports = fleet.RunAll(RuntimeFleet::Train(1, 0, false));
  ASSERT_TRUE(reports.ok()) << reports.status();
  for (const StepReport& report : *reports) {
    EXPECT_NEAR(report.phases.Sum(), report.step_seconds, 1e-9);
    EXPECT_GT(report.phases[Phase::kForward], 0);
  }
}

TEST_F(StageRuntimeDeviceTest, ALostCardIsTheStepsErrorAndIsToldOnce) {
  RuntimeFleet fleet(OnCards());
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  cards_[0]->api().fault = FakeDeviceApi::kIllegalAddress;
  RunAnswer answers[3];
  for (int k = 0; k < 3; ++k) {
    fleet.runtime(k).Run(RuntimeFleet::Train(1, 1, true), answers[k].callback());
  }
  EXPECT_THAT(std::string(answers[0].Get().status().message()),
              AllOf(HasSubstr("cudaErrorIllegalAddress"), HasSubstr("device cuda:0, ")));
  for (int k : {1, 2}) EXPECT_FALSE(answers[k].Get().ok()) << "the neighbours hear of it";
  LoadAnswer again;
  fleet.runtime(0).Load(fleet.LoadOf(0, 2, 1), again.callback());
  EXPECT_THAT(std::string(again.Get().status().message()), HasSubstr("cudaErrorIllegalAddress"))
      << "no new load helps, only a new process";
  fleet.runtime(0).Shutdown();
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_THAT(std::string(faults_[0].message()), HasSubstr("cudaErrorIllegalAddress"));
}

// Seen: a card's runtime had no memory left for an event, and the stage server ended: the refusal
// was kept like a broken card. It was the job's that asked for too much, and ends with its cell.
TEST_F(StageRuntimeDeviceTest, ARefusalOfTheCardFailsItsJobAndTheNextOneTrains) {
  RuntimeFleet::Options options = OnCards();
  options.stages = 1;
  RuntimeFleet fleet(options);
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  cards_[0]->api().event_code = device_code::kOutOfMemory;
  const absl::Status refused = fleet.TrainSteps(1, 0, 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("stage 0, "), HasSubstr("job a "), HasSubstr("device cuda:0, "),
                    HasSubstr("cudaErrorMemoryAllocation")));
  const absl::Status loaded = fleet.LoadAll(2);
  ASSERT_TRUE(loaded.ok()) << loaded;
  const auto losses = fleet.TrainSteps(2, 0, 2);
  EXPECT_TRUE(losses.ok()) << losses.status();
  fleet.runtime(0).Shutdown();
  EXPECT_THAT(faults_, testing::IsEmpty()) << "a server that is told of a fault ends";
}

// Symptom: a card that took long for a micro-batch looked stuck, and its neighbours gave up after
// half a minute. Cause: its host queued ahead and then waited for the whole step without a tick.
TEST_F(StageRuntimeDeviceTest, ACardThatIsBehindShowsProgressWhileItsHostWaits) {
  ProgressCounter progress;
  RuntimeFleet::Options options = OnCards();
  options.stages = 1;
  options.progress = &progress;
  RuntimeFleet fleet(options);
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  std::vector<uint64_t> seen;
  cards_[0]->BeSlow(10, [&] { seen.push_back(progress.count()); });
  ASSERT_TRUE(fleet.RunAll(RuntimeFleet::Train(1, 0, false)).ok());
  ASSERT_GT(seen.size(), 200u);
  std::ptrdiff_t most = 0;
  for (const uint64_t number : seen) {
    most = std::max(most, std::count(seen.begin(), seen.end(), number));
  }
  EXPECT_LE(most, 2 * DeviceProgress::kOperationsPerEvent) << "pieces of work without a sign";
}

TEST_F(StageRuntimeDeviceTest, ACardThatIsBehindShowsProgressWhileItsHostWaitsForANeighbour) {
  ProgressCounter progress;
  RuntimeFleet::Options options = OnCards();
  options.stages = 2;
  options.progress = &progress;
  RuntimeFleet fleet(options);
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  cards_[0]->BeSlow(1000, [] {});
  RunAnswer waiting;
  fleet.runtime(0).Run(RuntimeFleet::Train(1, 0, false), waiting.callback());
  Await([&] { return !fleet.runtime(0).Status().waiting_for.empty(); });
  const uint64_t before = progress.count();
  Await([&] { return progress.count() > before + 2; });
  EXPECT_FALSE(waiting.ready());
  EXPECT_TRUE(
      fleet.runtime(0).Abort(RuntimeFleet::FenceOf(1, 0), absl::AbortedError("seen enough")).ok());
  EXPECT_EQ(waiting.Get().status().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace stagecoach
