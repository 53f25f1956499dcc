#include "services/common/process/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/testing/temporary_folder.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

// In a process of its own, whose limits and signals may change. Exit code 0: the limit is what it
// should be.
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

// Exit code 0: a write beyond the limit is an error.
[[noreturn]] void WriteBeyondTheLimit(const std::string& path) {
  PrepareProcess();
  const rlimit small{10, 10};
  setrlimit(RLIMIT_FSIZE, &small);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const std::string text(20, 'x');
  const bool first = write(file, text.data(), text.size()) == 10;
  const bool refused = write(file, text.data(), text.size()) < 0 && errno == EFBIG;
  _exit(first && refused ? 0 : 1);
}

// The story: a limit of file size killed the coordinator by SIGXFSZ when its journal met it.
TEST(PrepareProcess, AWriteBeyondTheLimitOfFileSizeIsAnErrorAndNoDeath) {
  const TemporaryFolder folder;
  EXPECT_EXIT(WriteBeyondTheLimit(folder.File("file")), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stagecoach
