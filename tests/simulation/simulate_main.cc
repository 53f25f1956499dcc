// simulate: whole clusters on virtual time, a seed each, on one thread (docs/reliability.md, "The
// simulator").
//   simulate --seeds 1000 --from 1 [--trace] [--times]
// Exit code 1 if a seed ended otherwise than it may; what was wrong and the line that replays it
// are printed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "stage/link/grpc/malloc_settings.h"
#include "tests/simulation/simulation.h"

namespace stagecoach {
namespace {

struct Flags {
  uint64_t seeds = 1000, from = 1;
  bool trace = false, times = false;
};

bool Parse(int count, char** words, Flags* flags) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--trace") {
      flags->trace = true;
    } else if (word == "--times") {
      flags->times = true;
    } else if ((word == "--seeds" || word == "--from") && i + 1 < count) {
      uint64_t* const number = word == "--seeds" ? &flags->seeds : &flags->from;
      if (!absl::SimpleAtoi(words[++i], number)) return false;
    } else {
      return false;
    }
  }
  return true;
}

// What the seeds were like, for people.
class Summary {
 public:
  void Add(uint64_t seed, const SeedResult& result, double seconds) {
    seconds_ += seconds;
    events_ += result.ending.events;
    slowest_ = std::max(slowest_, {result.ending.seconds, seed});
    for (const JobEnding& job : result.ending.jobs) {
      ++phases_[job.ended ? JobPhaseName(job.phase) : "not ended"];
      for (const JobRecord& record : job.records) {
        if (record.kind == JobRecord::Kind::kRecovery) ++recoveries_;
        if (absl::StrContains(record.message, "in memory")) ++from_memory_;
      }
    }
    twins_ += result.ending.twins;
    interleaved_ += result.ending.interleaved;
    for (const auto& [at, fault] : result.ending.struck) ++faults_[FaultName(fault.kind)];
    wrong_ += result.violations.empty() ? 0 : 1;
    ++seeds_;
  }
  int wrong() const { return wrong_; }
  void Print() const {
    std::printf("%d seeds, %d wrong, %.1f s, %.2f ms and %.0f events a seed\n", seeds_, wrong_,
                seconds_, 1e3 * seconds_ / std::max(1, seeds_),
                static_cast<double>(events_) / std::max(1, seeds_));
    std::printf("the longest took %.1f virtual s, seed %llu\njobs:", slowest_.first,
                static_cast<unsigned long long>(slowest_.second));
    for (const auto& [phase, count] : phases_) std::printf(" %s %d", phase.c_str(), count);
    std::printf(
        "\nrecoveries: %d, from the memory of stages: %d\ncoordinators cut off: %d, file work amid "
        "that of another: %d\nfaults:",
        recoveries_, from_memory_, twins_, interleaved_);
    for (const auto& [kind, count] : faults_) std::printf(" %s %d,", kind.c_str(), count);
    std::printf("\n");
  }

 private:
  int seeds_ = 0, wrong_ = 0, recoveries_ = 0, from_memory_ = 0, twins_ = 0, interleaved_ = 0;
  double seconds_ = 0;
  uint64_t events_ = 0;
  std::pair<double, uint64_t> slowest_;
  std::map<std::string, int> phases_, faults_;
};

int Main(int count, char** words) {
  Flags flags;
  if (!Parse(count, words, &flags)) {
    std::fprintf(stderr, "simulate [--seeds N] [--from SEED] [--trace] [--times]\n");
    return 2;
  }
  KeepReceiveBuffersMapped();  // as a stage server's
  TellSeedOnAbort();
  Summary summary;
  for (uint64_t seed = flags.from; seed < flags.from + flags.seeds; ++seed) {
    if (flags.trace) std::fprintf(stderr, "%s", ScenarioText(ScenarioOf(seed)).c_str());
    const auto begin = std::chrono::steady_clock::now();
    const SeedResult result = RunSeed(seed, {.shown = flags.trace});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    summary.Add(seed, result, seconds);
    std::printf("%s", result.report.c_str());
    if (flags.times) {
      std::printf(
          "seed %llu: %.2f ms, %.3f virtual s, %llu events, hash %016llx, last fault %.3f\n",
          static_cast<unsigned long long>(seed), 1e3 * seconds, result.ending.seconds,
          static_cast<unsigned long long>(result.ending.events),
          static_cast<unsigned long long>(result.ending.hash), ScenarioOf(seed).LastHeal());
      for (const JobEnding& job : result.ending.jobs) {
        std::printf("  %s: %s, %s\n", job.job.id.c_str(), JobPhaseName(job.phase),
                    job.message.c_str());
      }
    }
    std::fflush(stdout);
  }
  summary.Print();
  return summary.wrong() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace stagecoach

int main(int count, char** words) { return stagecoach::Main(count, words); }
