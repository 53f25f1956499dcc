#include "tests/simulation/simulation.h"

#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stagecoach {
namespace {

std::atomic<uint64_t> seed_at_hand{0};

void OnAbort(int) {
  char line[96];
  const int length =
      std::snprintf(line, sizeof(line), "bin/simulate --from %llu --seeds 1 --trace\n",
                    static_cast<unsigned long long>(seed_at_hand.load()));
  static_cast<void>(!write(STDERR_FILENO, line, static_cast<size_t>(length)));
  signal(SIGABRT, SIG_DFL);
}

}  // namespace

std::string ReplayLine(uint64_t seed) {
  return absl::StrCat("bin/simulate --from ", seed, " --seeds 1 --trace");
}

void TellSeedOnAbort() { signal(SIGABRT, OnAbort); }

SeedResult RunSeed(uint64_t seed, const World::Options& options) {
  if (!options.shown) {  // what the code logs about faults, thousands of times
    spdlog::set_level(spdlog::level::off);
    google::protobuf::SetLogHandler(nullptr);
  }
  const Scenario scenario = ScenarioOf(seed);
  for (const ScenarioJob& job : scenario.jobs) TruthOf(job.family);  // before there is a world
  seed_at_hand = seed;
  SeedResult result;
  {
    World world(scenario, options);
    result.ending =
        world.Run(scenario.LastHeal() + (scenario.safety ? kSafetySeconds : kBoundSeconds));
  }
  result.violations = Violations(scenario, result.ending);
  if (result.violations.empty()) return result;
  result.report = ScenarioText(scenario);
  for (const std::string& violation : result.violations) {
    absl::StrAppend(&result.report, "WRONG ", violation, "\n");
  }
  absl::StrAppendFormat(&result.report, "after %.3f s, %d events\n%s\n", result.ending.seconds,
                        result.ending.events, ReplayLine(seed));
  return result;
}

}  // namespace stagecoach
