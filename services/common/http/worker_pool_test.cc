#include "services/common/http/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace stagecoach {
namespace {

TEST(WorkerPool, DoesSoMuchAtOnceAndKeepsSoMuchInLine) {
  WorkerPool pool("test", 2, 1);
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> done{0};
  const auto work = [&] {
    gone.wait();
    ++done;
  };
  EXPECT_TRUE(pool.Submit(work));
  EXPECT_TRUE(pool.Submit(work));
  // Two are busy or about to be; of more only one may wait.
  EXPECT_TRUE(pool.Submit(work));
  EXPECT_FALSE(pool.Submit(work));
  go.set_value();
  pool.Stop();
  EXPECT_EQ(done, 3) << "what is in line is done first";
  EXPECT_FALSE(pool.Submit(work));
}

}  // namespace
}  // namespace stagecoach
