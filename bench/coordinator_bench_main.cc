// coordinator-bench: what the coordinator's own thread spends on a training step, on a start and on
// a list of jobs, for pipelines and histories larger than the machine. Stages are played and time
// is virtual (coordinator/testing/simulated_cluster.h); job loop, journal and checkpoint store are
// the real ones. Prints a table; docs/benchmarks.md has its results.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "coordinator/journal/journal.h"
#include "coordinator/testing/simulated_cluster.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

constexpr int kSteps = 30;
constexpr char kJob[] = "measured";

struct Case {
  int stages, fleet, finished;
};

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ResidentMib() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// 131 layers, so that 128 stages have one each; nothing but steps.
JobSpec LongJob(int stages) {
  JobSpec spec = SmallJob(stages);
  spec.network = GptSpec{.layers = 64, .width = 4, .heads = 2, .context = 4, .vocabulary = 8};
  spec.training.steps = 10 * kSteps;
  spec.checkpoint.every_steps = 0;
  spec.evaluation.every_steps = 0;
  return spec;
}

// As if the small job that has ended had run `count` times.
void AddFinished(SimulatedCluster& cluster, int count) {
  CHECK_OK(cluster.Submit("ended", SmallJob(2)).status());
  CHECK(cluster.RunToEnd("ended")) << "a small job ends";
  cluster.CrashCoordinator();
  std::unique_ptr<Journal> journal = Journal::Open(cluster.journal_path()).value();
  JournalJob job;
  CHECK_OK(journal->EachJob([&](const JournalJob& ended) { job = ended; }));
  JournalUpdate update{.state = job.state,
                       .records = journal->Records(job.id, 0, 1'000'000).value()};
  for (int i = 1; i <= count; ++i) {
    job.id = update.job = absl::StrCat("ended-", i);
    ++job.sequence;
    CHECK_OK(journal->AddJob(job));
    CHECK_OK(journal->Write({&update, 1}));
  }
}

void Measure(const Case& c) {
  SimulatedCluster cluster(c.fleet);
  double start_seconds = 0, list_seconds = 0, grown_mib = 0;
  if (c.finished > 0) {
    AddFinished(cluster, c.finished);
    const double mib = ResidentMib(), begin = Seconds();
    cluster.StartCoordinator();
    start_seconds = Seconds() - begin;
    grown_mib = ResidentMib() - mib;
    const double list = Seconds();
    CHECK(static_cast<int>(cluster.loop().List().jobs.size()) == c.finished + 1)
        << "all are listed";
    list_seconds = Seconds() - list;
  }
  CHECK_OK(cluster.Submit(kJob, LongJob(c.stages)).status());
  CHECK(cluster.RunUntil([&] { return cluster.step_of(kJob) >= 5; })) << "it trains";
  const double before = cluster.loop_seconds();
  CHECK(cluster.RunUntil([&] { return cluster.step_of(kJob) >= 5 + kSteps; })) << "it trains";
  const double step = (cluster.loop_seconds() - before) / kSteps;
  std::printf("%6d %6d %9d %14.3f %12.2f %10.1f %12.0f\n", c.stages, c.fleet, c.finished,
              1e3 * step, start_seconds, 1e3 * list_seconds, grown_mib);
  std::fflush(stdout);
}

void Run() {
  std::printf("%6s %6s %9s %14s %12s %10s %12s\n", "stages", "fleet", "finished", "ms per step",
              "start (s)", "list (ms)", "memory (MiB)");
  for (const Case& c : {Case{8, 8, 0}, Case{32, 32, 0}, Case{128, 128, 0}, Case{32, 1000, 0},
                        Case{8, 8, 10000}, Case{128, 128, 10000}}) {
    Measure(c);
  }
}

}  // namespace
}  // namespace stagecoach

int main() { stagecoach::Run(); }
