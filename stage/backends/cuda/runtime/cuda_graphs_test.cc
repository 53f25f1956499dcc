// Lists of calls as CUDA graphs, on a card: captured, launched, and the bits of the same calls one
// by one. Skips without a card; the queue in front of them is tested in device/ and emulation/.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/graph_lists_testing.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CudaGraphs : public testing::TestWithParam<Elements> {
 protected:
  void SetUp() override {
    const auto backend = MakeCudaBackend({}, 0);
    if (!backend.ok()) GTEST_SKIP() << "needs a card: " << backend.status();
  }
};

TEST_P(CudaGraphs, HaveTheBitsOfTheCallsOneByOne) {
  std::vector<std::string> said;
  const Outputs plain = RunLists(**MakeCudaBackend({}, 0), GetParam());
  Outputs queued;
  {
    const auto backend = *MakeCudaBackend(
        {.cuda_graphs = true, .say = [&](const std::string& line) { said.push_back(line); }}, 0);
    queued = RunLists(*backend, GetParam());
    EXPECT_TRUE(backend->Synchronize().ok());
  }
  EXPECT_EQ(Disagreement(queued, plain, 0.0), "");
  EXPECT_THAT(
      said,
      ElementsAre(HasSubstr("1 captured, launched for 4 lists of calls; 1 lists call by call")));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaGraphs,
                         testing::Values(Elements::kFloat32, Elements::kBfloat16));

}  // namespace
}  // namespace stagecoach::conformance
