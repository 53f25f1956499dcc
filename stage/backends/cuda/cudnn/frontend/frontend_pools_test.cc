// What can be had from cuDNN without a card: the plans that the library makes for one by its
// properties.
// What plans compute is not known here: cuda_pool_test.cc.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/card/card_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/cudnn/frontend/pool_graph_builder.h"
#include "stage/backends/cuda/cudnn/testing/h100_properties.h"

namespace stagecoach::cudnn {
namespace {

struct Pool {
  const char* name;
  int64_t size, channels, window, stride, padding = 0;
};
// The whole image at the end of ResNet-50 and of AmoebaNet-D (18, 256), what that has of 3x3 in
// cells with a stride of 1 and of 2, and windows of an auxiliary head; then what no network here
// has.
constexpr Pool kPools[] = {
    {"the end of ResNet-50", 7, 2048, 7, 7},
    {"the end of AmoebaNet-D", 7, 3072, 7, 7},
    {"3x3 of 28", 28, 256, 3, 1, 1},
    {"3x3 of 14", 14, 512, 3, 1, 1},
    {"3x3 of 7", 7, 1024, 3, 1, 1},
    {"3x3 of 56, stride 2", 56, 128, 3, 2, 1},
    {"3x3 of 28, stride 2", 28, 256, 3, 2, 1},
    {"3x3 of 14, stride 2", 14, 512, 3, 2, 1},
    {"3x3 of 112, stride 2", 112, 64, 3, 2, 1},
    {"5x5 of an auxiliary head", 17, 1024, 5, 3},
    {"2x2", 56, 64, 2, 2},
    {"a row left over", 29, 17, 3, 2, 1},
};

PoolProblem OfPool(const Pool& l, PoolPass pass, DType dtype, bool count_padding = false) {
  const int64_t places = (l.size + 2 * l.padding - l.window) / l.stride + 1;
  return {.pass = pass,
          .dtype = dtype,
          .count_padding = count_padding,
          .samples = 8,
          .height = l.size,
          .width = l.size,
          .channels = l.channels,
          .places_height = places,
          .places_width = places,
          .window_height = l.window,
          .window_width = l.window,
          .stride_height = l.stride,
          .stride_width = l.stride,
          .padding_height = l.padding,
          .padding_width = l.padding};
}

// In both passes and types, with padding counted or not.
std::vector<std::pair<std::string, PoolProblem>> AllPools() {
  std::vector<std::pair<std::string, PoolProblem>> problems;
  for (const Pool& pool : kPools) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const bool count : {false, true}) {
        for (const PoolPass pass : {PoolPass::kForward, PoolPass::kGradient}) {
          problems.emplace_back(std::string(pool.name) + " in " + DTypeName(dtype),
                                OfPool(pool, pass, dtype, count));
        }
      }
    }
  }
  return problems;
}

class PoolPlans : public testing::Test {
 protected:
  void SetUp() override {
    const auto library = UseCudnn();
    if (!library.ok()) GTEST_SKIP() << "needs cuDNN: " << library.status();
    auto graphs = PlanPoolsFor(kH100, 90);
    // How a card is written down is cuDNN's own affair, and may change.
    if (!graphs.ok()) GTEST_SKIP() << "needs a cuDNN that takes the text: " << graphs.status();
    graphs_ = *std::move(graphs);
  }
  std::unique_ptr<PoolGraphs> graphs_;
};

// Gradients too that are left to our own kernels for what they promise.
TEST_F(PoolPlans, AreThereForAnH100AndNeedNoWorkspace) {
  for (const auto& [name, problem] : AllPools()) {
    const auto graph = graphs_->Build(problem, kCardWorkspaceBytes);
    ASSERT_TRUE(graph.ok()) << name << ": " << graph.status();
    EXPECT_EQ((*graph)->workspace_bytes(), 0) << name;
    EXPECT_THAT((*graph)->engine(), testing::Not(testing::IsEmpty()));
  }
}

TEST_F(PoolPlans, OfForwardPassesAndMeansOverTheImageAreAskedFor) {
  int asked = 0;
  for (const auto& [name, problem] : AllPools()) {
    if (WhyOwnKernels(problem, graphs_->offer()).empty()) ++asked;
  }
  constexpr int kForward = 12 * 2 * 2;
  constexpr int kTiled = 3 * 2 * 2;
  EXPECT_EQ(asked, kForward + kTiled);
}

TEST_F(PoolPlans, AreTheSameWhenTheyAreMadeAgain) {
  const auto again = PlanPoolsFor(kH100, 90);
  ASSERT_TRUE(again.ok());
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const PoolProblem problem = OfPool(kPools[0], PoolPass::kForward, dtype);
    const auto first = graphs_->Build(problem, kCardWorkspaceBytes);
    const auto second = (*again)->Build(problem, kCardWorkspaceBytes);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
    EXPECT_EQ((*first)->engine(), (*second)->engine());
  }
}

TEST_F(PoolPlans, ThatTakeMoreThanTheWorkspaceAreNotTaken) {
  const auto graph = graphs_->Build(OfPool(kPools[0], PoolPass::kForward, DType::kF32), -1);
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kUnimplemented) << graph.status();
}

TEST_F(PoolPlans, CannotBeRunWithoutTheCard) {
  const auto graph =
      graphs_->Build(OfPool(kPools[0], PoolPass::kForward, DType::kF32), kCardWorkspaceBytes);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->Run({}, nullptr).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PoolPlans, NeedPropertiesThatCudnnTakes) {
  EXPECT_EQ(PlanPoolsFor("{}", 90).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stagecoach::cudnn
