// The conformance rows of averages over windows with a library beside the kernels: plain loops over
// the volumes that cuDNN would be given, and own kernels for what it is not asked for.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "operations/images/pool.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/conformance/rows.h"
#include "stage/backends/cuda/cudnn/testing/host_pools.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

std::vector<ConformanceRow> PoolRows() {
  std::vector<ConformanceRow> rows;
  for (ConformanceRow& row : ConformanceRows()) {
    if (row.name.find("average_pool") != std::string::npos) rows.push_back(std::move(row));
  }
  return rows;
}

class CudaPoolsByALibrary : public testing::TestWithParam<ConformanceRow> {};

TEST_P(CudaPoolsByALibrary, AgreesWithTheReference) {
  cudnn::PoolLog log;
  cuda::EmulatedBackend backend({});
  backend.AverageBy(std::make_unique<cudnn::HostPools>(&log), 1024);
  const auto reference = MakeReferenceBackend(BackendOptions{});
  const Outputs first = GetParam().run(backend);
  EXPECT_EQ(GetParam().Disagreement(first, GetParam().Expected(*reference)), "");
  EXPECT_EQ(Disagreement(GetParam().run(backend), first, 0.0), "") << "second run";
  // Every row has a forward pass, and those whose windows overlap a gradient that is not for the
  // library.
  EXPECT_GT(log.runs, 0);
  const bool sums = GetParam().name.find("global") == std::string::npos;
  const std::vector<std::string> ways = backend.TakeWays();
  EXPECT_THAT(ways, testing::Contains("cuDNN average pool, engine of plain loops"));
  EXPECT_EQ(ways.size(), sums ? 2u : 1u) << testing::PrintToString(ways);
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaPoolsByALibrary, testing::ValuesIn(PoolRows()),
                         [](const auto& info) { return info.param.name; });

// What a library meets is the job's error, or the card's; own kernels do not hide it.
TEST(CudaPools, AnErrorOfTheLibraryIsNotedAndNothingIsLaunched) {
  cudnn::PoolLog log;
  log.run = absl::ResourceExhaustedError("no memory");
  cuda::EmulatedBackend backend({});
  backend.AverageBy(std::make_unique<cudnn::HostPools>(&log), 1024);
  Bench bench(backend);
  const int64_t before = backend.Launches();
  RunOn(backend, {.operation = "global_average_pool",
                  .inputs = {bench.Normal({4, 4, 2})},
                  .outputs = {bench.Blank({2})}});
  EXPECT_EQ(backend.Launches(), before);
  EXPECT_EQ(backend.Synchronize().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(backend.Synchronize().message()), testing::HasSubstr("no memory"));
  backend.EndCell();
  EXPECT_TRUE(backend.Synchronize().ok());
}

TEST(CudaPools, AreTheRowsOfAllAverages) { EXPECT_GE(PoolRows().size(), 2u * 5); }

}  // namespace
}  // namespace stagecoach::conformance
