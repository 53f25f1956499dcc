// trace-bench: what a span costs the thread that writes it: into the ring alone, and all of
// entering a phase with and without a tracer; with a reader that takes the whole ring all the time.
//
//   trace-bench
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "stage/watch/step_tracer.h"

namespace stagecoach {
namespace {

constexpr int kRounds = 21;
constexpr int kSpans = 100'000;

// Nanoseconds of one call, the median of several rounds.
double MedianNanos(const std::function<void(int)>& call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kSpans; ++i) call(i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    rounds.push_back(took.count() / kSpans);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

void Measure(const char* title) {
  TraceRing ring;
  StepTracer tracer(&ring, SystemClock::Get(), nullptr);
  PhaseClock watched(SystemClock::Get(), &tracer), alone(SystemClock::Get());
  tracer.Begin({.job = "bench"}, StageId(0));
  std::atomic<bool> stop{false};
  std::atomic<size_t> read{0};
  std::thread reader;
  if (title[0] == 'r') {
    reader = std::thread([&] {
      while (!stop) read += ring.Read("bench", 0).size();
    });
  }
  const TraceSpan span{.job = TraceJob("bench")};
  const double add = MedianNanos([&](int) { ring.Add(span); });
  const double enter = MedianNanos([&](int i) { alone.Enter(Phase::kForward, MicroBatchId(i)); });
  const double traced =
      MedianNanos([&](int i) { watched.Enter(Phase::kForward, MicroBatchId(i)); });
  stop = true;
  if (reader.joinable()) reader.join();
  std::printf("%-12s  add %6.1f ns   enter a phase %6.1f ns   traced %6.1f ns\n", title, add, enter,
              traced);
}

}  // namespace
}  // namespace stagecoach

int main() {
  stagecoach::Measure("no reader");
  stagecoach::Measure("reader");
  return 0;
}
