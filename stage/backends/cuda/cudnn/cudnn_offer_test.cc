#include "stage/backends/cuda/cudnn/cudnn_offer.h"

#include "gtest/gtest.h"

namespace stagecoach::cudnn {
namespace {

TEST(CudnnOffer, AMachineThatLacksSomethingIsNoRefusal) {
  EXPECT_TRUE(
      RefusesTheGraph("No execution plans support the graph.\nPlan at index 0: failed with "
                      "code: CUDNN_STATUS_NOT_SUPPORTED_SHAPE"));
  EXPECT_TRUE(RefusesTheGraph("No valid engine configs for Matmul_"));
  EXPECT_FALSE(RefusesTheGraph("CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING"));
  EXPECT_FALSE(RefusesTheGraph("CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"));
  EXPECT_FALSE(RefusesTheGraph("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"));
}

// Seen with cuDNN 9.19: a graph that no engine takes was told as a broken machine, as the reason
// that cuDNN gives quotes its own source.
TEST(CudnnOffer, AStatusInTheReasonOfARefusalIsNotTheStatus) {
  const std::string refusal =
      "No valid engine configs for _\n{\"engineId\":1}\nWarning: CUDNN_STATUS_NOT_SUPPORTED; "
      "Reason: "
      "(CUDNN_STATUS_NOT_INITIALIZED == status) || (CUDNN_STATUS_NOT_SUPPORTED == status)\n";
  EXPECT_TRUE(RefusesTheGraph(refusal));
  EXPECT_FALSE(
      RefusesTheGraph(refusal +
                      "Warning: CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING; Reason: "
                      "this->libcuda == nullptr\n"));
}

TEST(CudnnOffer, TellsARefusalOfMemoryFromABrokenCard) {
  EXPECT_TRUE(LacksMemory("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"));
  EXPECT_TRUE(LacksMemory("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"));
  EXPECT_FALSE(LacksMemory("CUDNN_STATUS_EXECUTION_FAILED_CUDART"));
}

}  // namespace
}  // namespace stagecoach::cudnn
