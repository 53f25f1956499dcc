// The conformance rows of convolutions with a library beside the kernels: plain loops over the
// layouts that cuDNN would be given, and own kernels for what is added, widened or refused.
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/conformance/rows.h"
#include "stage/backends/cuda/cudnn/host_convolutions.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"

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

TEST(CudaConvolutions, AreTheRowsOfAllFourOperations) {
  EXPECT_GE(ConvolutionRows().size(), 2u * 20);
}

}  // namespace
}  // namespace stagecoach::conformance
