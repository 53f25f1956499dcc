#include "services/common/process/open_files.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

TEST(OpenFiles, AShareIsWhatIsAskedForOrAPartOfTheLimit) {
  EXPECT_EQ(MostConnections(FileShare::kGrpc, 4096, 65536), 4096);
  EXPECT_EQ(MostConnections(FileShare::kGrpc, 4096, 1024), 512);
  EXPECT_EQ(MostConnections(FileShare::kHttp, 4096, 1024), 128);
  EXPECT_EQ(MostConnections(FileShare::kProbes, 256, 1024), 64);
  EXPECT_EQ(MostConnections(FileShare::kProbes, 256, 65536), 256);
  EXPECT_EQ(MostConnections(FileShare::kGrpc, 1000000, RLIM_INFINITY), 1000000);
}

// The story: three quarters for gRPC, a quarter for the page and 256 for the probes were all that a
// process with 1,024 files had; then it could open no journal and no checkpoint, and no socket to
// dial itself by.
TEST(OpenFiles, AllServersTogetherLeaveAQuarter) {
  constexpr int kAll = 1 << 30;
  for (const rlim_t limit : {256, 1024, 4096, 65536}) {
    int taken = 0;
    for (const FileShare share : {FileShare::kGrpc, FileShare::kHttp, FileShare::kProbes}) {
      taken += MostConnections(share, kAll, limit);
    }
    EXPECT_LE(taken, static_cast<int>(limit - limit / 4)) << limit;
  }
}

}  // namespace
}  // namespace stagecoach
