// What a convolution on the cpu takes besides its tensors, and the signs of progress that it gives.
#include <string_view>

#include "base/progress.h"
#include "gtest/gtest.h"
#include "stage/backends/conformance/case_table.h"

namespace stagecoach::conformance {
namespace {

CaseCalls ConvolutionCalls(std::string_view name) {
  for (const OperationCase& of : AllCases()) {
    if (of.operation->name() == "convolution" && of.call.name == name) return CallsOfCase(of);
  }
  CHECK(false) << "no case " << name;
  return {};
}

// Whoever waits for a step tells slow from stuck by the ticks, and a sample's image may be large.
TEST(CpuConvolution, TicksForEachBlockOfPlacesInItsGradients) {
  const auto backend = MakeCpuBackend(BackendOptions{.threads = 1});
  Bench bench(*backend);
  const CaseCalls calls = ConvolutionCalls("many_places");
  CaseTable table(bench, calls);
  table.SetGiven();
  const auto blocks = static_cast<uint64_t>(3 * calls.of.call.samples);
  for (const Call& call : calls.backward) {
    ProgressCounter progress;
    const ProgressScope scope(&progress);
    table.Run(call);
    EXPECT_GE(progress.count(), blocks) << call.operation;
  }
}

TEST(CpuConvolution, OfSingleChannelsInFloat32TakesNoRoomForColumnsOrImages) {
  const auto backend = MakeCpuBackend(BackendOptions{.threads = 1});
  Bench bench(*backend);
  const CaseCalls calls = ConvolutionCalls("many_places_depthwise");
  CaseTable table(bench, calls);
  table.SetGiven();
  table.Run(calls.forward[0]);
  for (const Call& call : calls.backward) {
    if (call.operation == "convolution_input_gradient") table.Run(call);
  }
  const int64_t weight_and_least = 4 * 48 + 64;  // by taps, and what a worker has at least
  EXPECT_LE(backend->allocator().Use().peak[static_cast<size_t>(MemoryKind::kWorkspace)],
            weight_and_least);
}

}  // namespace
}  // namespace stagecoach::conformance
