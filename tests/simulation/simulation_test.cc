// The simulator itself: a seed is a run, and what is wrong is found. The seeds are run by
// simulate_main.cc.
#include "tests/simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace stagecoach {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Simulation, ASeedIsTheSameRunTwice) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const WorldEnding first = RunSeed(seed).ending, second = RunSeed(seed).ending;
    EXPECT_EQ(first.hash, second.hash) << ReplayLine(seed);
    EXPECT_EQ(first.events, second.events) << ReplayLine(seed);
    hashes.insert(first.hash);
  }
  EXPECT_EQ(hashes.size(), 30u) << "seeds differ";
}

// Names of temporary folders and the journal's secret came from the machine: where an error names
// such a folder, or a bit of a message is flipped that does, a seed told something else each time.
TEST(Simulation, ASeedTellsTheSameTwice) {
  const auto told = [](uint64_t seed) {
    testing::internal::CaptureStderr();
    RunSeed(seed, {.shown = true});
    return testing::internal::GetCapturedStderr();
  };
  int named = 0;
  for (uint64_t seed = 1; named < 3 && seed <= 500; ++seed) {
    const std::string once = told(seed);
    if (once.find("/.tmp-") == once.npos) continue;
    ++named;
    EXPECT_TRUE(once == told(seed)) << ReplayLine(seed);
  }
  EXPECT_EQ(named, 3);
}

TEST(Simulation, EveryFamilyHasOneTruth) {
  std::set<std::string> digests;
  for (int family = 0; family < kFamilies; ++family) {
    const Truth& truth = TruthOf(family);
    EXPECT_THAT(truth.digest, HasSubstr("sha256:"));
    ASSERT_EQ(truth.checkpoints.size(), truth.steps.size());
    EXPECT_THAT(truth.checkpoints.rbegin()->second, HasSubstr("opt/"));
    EXPECT_GE(truth.steps.size(), 3u);
    digests.insert(truth.digest);
  }
  EXPECT_EQ(static_cast<int>(digests.size()), kFamilies);
}

TEST(Simulation, AllKindsOfFaultsAreDrawn) {
  std::set<Fault::Kind> drawn;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    for (const Fault& fault : ScenarioOf(seed).faults) drawn.insert(fault.kind);
  }
  EXPECT_EQ(drawn.size(), static_cast<size_t>(Fault::Kind::kSlowStage) + 1);
}

TEST(Simulation, StagesGoOnFromTheMemoryOfOthers) {
  int loads = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) loads += RunSeed(seed).ending.loads_from_memory;
  EXPECT_GT(loads, 10);
}

TEST(Simulation, EveryStoreAndTwoCoordinatorsOnIt) {
  std::set<StoreForm> forms;
  int twins = 0, interleaved = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    forms.insert(ScenarioOf(seed).store);
    const WorldEnding ending = RunSeed(seed).ending;
    twins += ending.twins;
    interleaved += ending.interleaved;
  }
  EXPECT_EQ(forms.size(), 3u);
  EXPECT_GT(twins, 10);
  EXPECT_GT(interleaved, 3) << "file work of one coordinator amid that of another";
}

// An oracle that is blind finds nothing in thousands of seeds either.
uint64_t FirstWrong(PlantedFault planted, uint64_t most, std::string* report) {
  for (uint64_t seed = 1; seed <= most; ++seed) {
    const SeedResult result = RunSeed(seed, {.planted = planted});
    if (result.violations.empty()) continue;
    *report = result.report;
    return seed;
  }
  return 0;
}

TEST(SimulationCanary, AnUpdateWithAnotherLearningRateIsFound) {
  std::string report;
  const uint64_t seed = FirstWrong(PlantedFault::kWrongUpdate, 20, &report);
  ASSERT_NE(seed, 0u);
  EXPECT_THAT(RunSeed(seed).violations, IsEmpty()) << "without it the seed is fine";
  EXPECT_THAT(report, HasSubstr(ReplayLine(seed)));
  EXPECT_THAT(report, HasSubstr("has loss"));
}

TEST(SimulationCanary, ADiskThatForgetsWhatItHasSyncedIsFound) {
  std::string report;
  const uint64_t seed = FirstWrong(PlantedFault::kForgetfulDisk, 1000, &report);
  ASSERT_NE(seed, 0u);
  EXPECT_THAT(RunSeed(seed).violations, IsEmpty()) << "without it the seed is fine";
  EXPECT_THAT(report, HasSubstr("WRONG"));
}

// A blackout then leaves a committed checkpoint without its bytes.
TEST(SimulationCanary, AStoreThatSyncsNothingIsFound) {
  std::string report;
  const uint64_t seed = FirstWrong(PlantedFault::kForgetfulStore, 1000, &report);
  ASSERT_NE(seed, 0u);
  EXPECT_THAT(RunSeed(seed).violations, IsEmpty()) << "without it the seed is fine";
  EXPECT_THAT(report, HasSubstr("is broken"));
}

}  // namespace
}  // namespace stagecoach
