// A network whose convolutions go by Winograd's filtering on the cpu
// (operations/images/winograd.h): small networks of other tests have too few channels or places for
// it.
#include "operations/images/winograd.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/zoo/resnet.h"
#include "plan/costs/host_memory.h"
#include "plan/costs/small_tensors.h"
#include "stage/testing/pipeline_harness.h"
#include "tests/transparency/every_pipeline.h"

namespace stagecoach {
namespace {

Network WideResnet(Precision precision = Precision::kFloat32) {
  const ResnetSpec spec{.image = {16, 16, 3}, .classes = 10, .depth = 8, .width = 32};
  const ConvolutionExtents block{
      .image = {16, 16}, .window = {3, 3}, .places = {16, 16}, .in = 32, .out = 32};
  CHECK(SuitsWinograd({.padding = {1, 1}}, block)) << "this test is for such shapes";
  return *ExpandNetwork(spec, precision);
}

class Winograd : public testing::TestWithParam<Precision> {};

// Not on the reference, which has no filtering: its loops over so many channels took most of the time.
TEST_P(Winograd, HasTheSameBitsInEveryPipeline) {
  ExpectTheSameBitsInEveryPipeline(WideResnet(GetParam()), nullptr, OptimizerSpec(), {CpuDevice()});
}

TEST_P(Winograd, HasTheReferencesFirstStep) {
  ExpectTheReferencesFirstStep(WideResnet(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Winograd,
                         testing::Values(Precision::kFloat32, Precision::kBfloat16),
                         [](const auto& info) { return PrecisionName(info.param); });

// A thread's room for tiles is the largest that such a network takes beside its tensors.
TEST(WinogradOfACell, IsInThePlanOfAStagesMemory) {
  const Network network = WideResnet();
  const int layers = static_cast<int>(network.layers.size());
  for (const int64_t micro_batches : {1, 4}) {
    PipelineHarness pipeline({.batch_size = 8,
                              .micro_batches = micro_batches,
                              .make_backend = [] { return MakeCpuBackend({.threads = 1}); },
                              .network = network,
                              .optimizer = SgdSpec{}});
    ASSERT_TRUE(pipeline.TrainStep().ok());
    const int64_t seen =
        pipeline.backend(0).allocator().Use().peak[static_cast<size_t>(MemoryKind::kWorkspace)];
    const KernelWorkspace planned =
        HostWorkspace(network, 0, layers, 8 / micro_batches, pipeline.backend(0).Host());
    EXPECT_LE(seen, planned.room + planned.shared + planned.kept +
                        SmallTensorBytes(network, 0, layers, micro_batches, SgdSpec{}));
  }
}

}  // namespace
}  // namespace stagecoach
