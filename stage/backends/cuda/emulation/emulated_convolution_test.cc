// The conformance rows of convolutions with a library beside the kernels: plain loops over the
// layouts that cuDNN would be given, and own kernels for what is added, widened or refused.
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "operations/images/convolution.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/conformance/rows.h"
#include "stage/backends/cuda/cudnn/testing/host_convolutions.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

std::unique_ptr<cuda::EmulatedBackend> MakeConvolving(const BackendOptions& options,
                                                      int64_t workspace_bytes) {
  static auto* const log = new cudnn::ConvolutionLog;
  auto backend = std::make_unique<cuda::EmulatedBackend>(options);
  backend->ConvolveBy(std::make_unique<cudnn::HostConvolutions>(log), workspace_bytes);
  return backend;
}

std::unique_ptr<Backend> MakeRoomy(const BackendOptions& options) {
  return MakeConvolving(options, int64_t{8} << 20);
}
// Weight gradients in bfloat16 take slices of few samples.
std::unique_ptr<Backend> MakeTight(const BackendOptions& options) {
  return MakeConvolving(options, (int64_t{4} << 20) + (int64_t{64} << 10));
}

std::vector<ConformanceRow> ConvolutionRows() {
  std::vector<ConformanceRow> rows;
  for (ConformanceRow& row : ConformanceRows()) {
    if (row.name.find("convolution") != std::string::npos) rows.push_back(std::move(row));
  }
  return rows;
}

class CudaConvolutionsByALibrary : public testing::TestWithParam<ConformanceRow> {
 protected:
  void Expect(std::unique_ptr<Backend> backend) {
    const auto reference = MakeReferenceBackend(BackendOptions{});
    const Outputs first = GetParam().run(*backend);
    EXPECT_EQ(GetParam().Disagreement(first, GetParam().Expected(*reference)), "");
    EXPECT_EQ(Disagreement(GetParam().run(*backend), first, 0.0), "") << "second run";
    const std::vector<std::string> ways = backend->TakeWays();
    const bool own = GetParam().name.find("padding_beyond_the_window") != std::string::npos;
    EXPECT_THAT(ways, testing::Contains(testing::StartsWith(own ? "own convolution kernels, as the "
                                                                  "padding"
                                                                : "cuDNN convolution, engine")));
    EXPECT_EQ(ways.size(), 1u);
  }
};

TEST_P(CudaConvolutionsByALibrary, AgreesWithTheReference) {
  Expect(MakeRoomy({}));
  Expect(MakeTight({}));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaConvolutionsByALibrary, testing::ValuesIn(ConvolutionRows()),
                         [](const auto& info) { return info.param.name; });

// What a library meets is the job's error, or the card's; own kernels do not hide it.
TEST(CudaConvolutions, AnErrorOfTheLibraryIsNotedAndNothingIsLaunched) {
  cudnn::ConvolutionLog log;
  log.run = absl::ResourceExhaustedError("no memory");
  cuda::EmulatedBackend backend({});
  backend.ConvolveBy(std::make_unique<cudnn::HostConvolutions>(&log), 1024);
  Bench bench(backend);
  const int64_t before = backend.Launches();
  RunOn(backend, {.operation = "convolution",
                  .attributes = ToAttributes(ConvolutionAttributes{}),
                  .inputs = {bench.Normal({4, 4, 2}), Whole(bench.Normal({3, 1, 1, 2}))},
                  .outputs = {bench.Blank({4, 4, 3})}});
  EXPECT_EQ(backend.Launches(), before);
  EXPECT_EQ(backend.Synchronize().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(backend.Synchronize().message()), testing::HasSubstr("no memory"));
  backend.EndCell();
  EXPECT_TRUE(backend.Synchronize().ok());
}

// Two launches of own kernels that widen, one that adds, for each slice.
TEST(CudaConvolutions, WeightGradientsInBfloat16TakeThreeLaunchesASlice) {
  cudnn::ConvolutionLog log;
  cuda::EmulatedBackend backend({});
  backend.ConvolveBy(std::make_unique<cudnn::HostConvolutions>(&log),
                     (int64_t{4} << 20) + 256 + 1024 + 1024);
  Bench bench(backend, Elements::kBfloat16);
  // A sample of either is 8 * 8 * 2 numbers, 512 bytes in float32.
  const Tensor dy = bench.Activation({4 * 8, 8, 2}), x = bench.Activation({4 * 8, 8, 2});
  const Tensor d_weight = bench.Normal({2, 1, 1, 2});
  const int64_t before = backend.Launches();
  RunOn(backend, {.operation = "convolution_weight_gradient",
                  .attributes = ToAttributes(ConvolutionAttributes{}),
                  .inputs = {dy, x},
                  .adds = {d_weight},
                  .samples = 4});
  EXPECT_EQ(log.workspaces.size(), 2u) << "slices";
  EXPECT_EQ(backend.Launches() - before, 2 * 3);
}

TEST(CudaConvolutions, AreTheRowsOfAllFourOperations) {
  EXPECT_GE(ConvolutionRows().size(), 2u * 20);
}

}  // namespace
}  // namespace stagecoach::conformance
