#include "services/common/process/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

// In a process of its own, whose limits and signals may change. Exit code 0: the limit is what it should be.
[[noreturn]] void PrepareWithFewFiles(rlim_t soft) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = soft;
  setrlimit(RLIMIT_NOFILE, &limit);
  PrepareProcess();
  rlimit raised{};
  getrlimit(RLIMIT_NOFILE, &raised);
  const bool good = raised.rlim_cur == std::min<rlim_t>(limit.rlim_max, 65536) &&
                    raised.rlim_max == limit.rlim_max;
  _exit(good ? 0 : 1);
}

TEST(PrepareProcess, RaisesTheLimitOfOpenFiles) {
  EXPECT_EXIT(PrepareWithFewFiles(256), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stagecoach
