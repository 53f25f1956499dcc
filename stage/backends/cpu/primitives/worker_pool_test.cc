#include "stage/backends/cpu/primitives/worker_pool.h"

#include <numeric>

#include "gtest/gtest.h"
#include "stage/backends/cpu/primitives/openmp.h"

namespace stagecoach::cpu {
namespace {

TEST(WorkerPool, RunsEveryTaskOnceInEveryOfManyShortRuns) {
  WorkerPool pool(4);
  EXPECT_EQ(pool.threads(), 4);
  for (int64_t run = 0; run < 2000; ++run) {
    const int64_t tasks = run % 9;
    std::vector<int> counts(tasks, 0);  // not atomic: two workers on one task would be a race
    pool.Run(tasks, [&](int64_t task, int worker) {
      EXPECT_GE(worker, 0);
      EXPECT_LT(worker, 4);
      ++counts[task];
    });
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), tasks);
    for (const int count : counts) EXPECT_EQ(count, 1);
  }
}

TEST(WorkerPool, OpenMpIsSerialInsideTasksAndRestoredForTheCaller) {
  omp_set_num_threads(5);
  WorkerPool pool(3);
  std::vector<int> seen(16, 0);
  pool.Run(16, [&](int64_t task, int) { seen[task] = omp_get_max_threads(); });
  for (const int threads : seen) EXPECT_EQ(threads, 1);
  EXPECT_EQ(omp_get_max_threads(), 5);
}

TEST(WorkerPool, OneThreadWorksInTheCaller) {
  WorkerPool pool(1);
  const auto caller = std::this_thread::get_id();
  pool.Run(3, [&](int64_t, int worker) {
    EXPECT_EQ(worker, 0);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

}  // namespace
}  // namespace stagecoach::cpu
