// What can be had from cuDNN without a card: the headers' checks of the graphs' descriptions, and
// the plans that the library makes for a card by its properties. What plans compute is not known
// here: cuda_convolution_test.cc.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "devices/card/card_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/cudnn/frontend/convolution_graph_builder.h"
#include "stage/backends/cuda/cudnn/testing/h100_properties.h"

namespace stagecoach::cudnn {
namespace {

struct Layer {
  const char* name;
  int64_t size, channels, out, window, stride = 1, padding = 0, dilation = 1, groups = 1;
};
// Of ResNet-50, then of a ConvNeXt, a ResNeXt and a U-Net, and one of odd extents.
constexpr Layer kLayers[] = {
    {"stem", 224, 3, 64, 7, 2, 3},
    {"3x3 of 64", 56, 64, 64, 3, 1, 1},
    {"1x1 of 256", 56, 256, 64, 1},
    {"3x3, stride 2", 56, 128, 128, 3, 2, 1},
    {"3x3 of 512", 7, 512, 512, 3, 1, 1},
    {"1x1, stride 2", 56, 256, 512, 1, 2},
    {"patches", 224, 3, 96, 4, 4},
    {"depthwise", 56, 96, 96, 7, 1, 3, 1, 96},
    {"32 groups", 56, 128, 128, 3, 1, 1, 1, 32},
    {"3x3 of 320", 64, 320, 320, 3, 1, 1},
    {"dilated", 28, 64, 64, 3, 1, 2, 2},
    {"odd", 11, 17, 33, 3, 1, 1},
};

ConvolutionProblem OfLayer(const Layer& l, ConvolutionPass pass, Precision precision) {
  const int64_t places = (l.size + 2 * l.padding - l.dilation * (l.window - 1) - 1) / l.stride + 1;
  return {.pass = pass,
          .precision = precision,
          .samples = 8,
          .height = l.size,
          .width = l.size,
          .channels = l.channels,
          .places_height = places,
          .places_width = places,
          .out = l.out,
          .window_height = l.window,
          .window_width = l.window,
          .stride_height = l.stride,
          .stride_width = l.stride,
          .padding_height = l.padding,
          .padding_width = l.padding,
          .dilation_height = l.dilation,
          .dilation_width = l.dilation,
          .groups = l.groups};
}

// Every layer in every pass and precision; forward with a bias as well.
std::vector<std::pair<std::string, ConvolutionProblem>> AllProblems() {
  std::vector<std::pair<std::string, ConvolutionProblem>> problems;
  for (const Layer& layer : kLayers) {
    for (const Precision precision :
         {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
      const std::string name = std::string(layer.name) + " in " + PrecisionName(precision);
      for (const auto& [pass, what] : {std::pair{ConvolutionPass::kForward, ", forward"},
                                       {ConvolutionPass::kInputGradient, ", input gradient"},
                                       {ConvolutionPass::kWeightGradient, ", weight gradient"}}) {
        problems.emplace_back(name + what, OfLayer(layer, pass, precision));
      }
      problems.emplace_back(name + ", bias", OfLayer(layer, ConvolutionPass::kForward, precision));
      problems.back().second.bias = true;
    }
  }
  return problems;
}

class ConvolutionDescriptions : public testing::Test {
 protected:
  void SetUp() override {
    const auto library = UseCudnn();
    if (!library.ok()) GTEST_SKIP() << "needs cuDNN: " << library.status();
  }
};

TEST_F(ConvolutionDescriptions, AreAcceptedByTheHeaders) {
  for (const auto& [name, problem] : AllProblems()) {
    const ConvolutionRoom room = CutWorkspace(problem, kCardWorkspaceBytes);
    for (const int capability : {80, 90}) {
      EXPECT_EQ(CheckDescription(ExecutionOf(problem, room), capability), absl::OkStatus()) << name;
    }
  }
}

class ConvolutionPlans : public ConvolutionDescriptions {
 protected:
  void SetUp() override {
    ConvolutionDescriptions::SetUp();
    if (IsSkipped()) return;
    auto graphs = PlanConvolutionsFor(kH100, 90);
    // How a card is written down is cuDNN's own affair, and may change.
    if (!graphs.ok()) GTEST_SKIP() << "needs a cuDNN that takes the text: " << graphs.status();
    graphs_ = *std::move(graphs);
  }
  std::unique_ptr<ConvolutionGraphs> graphs_;
};

TEST_F(ConvolutionPlans, AreThereForAnH100InEveryPassAndPrecisionAndFitTheWorkspace) {
  for (const auto& [name, problem] : AllProblems()) {
    ASSERT_EQ(WhyOwnKernels(problem, graphs_->offer(), kCardWorkspaceBytes), "") << name;
    const ConvolutionRoom room = CutWorkspace(problem, kCardWorkspaceBytes);
    const auto graph = graphs_->Build(ExecutionOf(problem, room), room.library_bytes);
    if (absl::StrContains(graph.status().message(), "CUDA_DRIVER")) {
      GTEST_SKIP() << "the driver of this machine loads no code for an H100: " << graph.status();
    }
    ASSERT_TRUE(graph.ok()) << name << ": " << graph.status();
    EXPECT_LE((*graph)->workspace_bytes(), room.library_bytes) << name;
    EXPECT_THAT((*graph)->engine(), testing::Not(testing::IsEmpty()));
  }
}

// What copies leave to the library is least where samples just fit.
TEST_F(ConvolutionPlans, OfWeightGradientsInBfloat16FitHoweverManySamplesThereAre) {
  for (const Layer& layer : kLayers) {
    for (const int64_t samples : {1, 5, 6, 7, 31, 96}) {
      ConvolutionProblem problem =
          OfLayer(layer, ConvolutionPass::kWeightGradient, Precision::kBfloat16);
      problem.samples = samples;
      const ConvolutionRoom room = CutWorkspace(problem, kCardWorkspaceBytes);
      ASSERT_GT(room.samples, 0) << layer.name;
      const auto graph = graphs_->Build(ExecutionOf(problem, room), room.library_bytes);
      EXPECT_TRUE(graph.ok()) << layer.name << ", " << samples << ": " << graph.status();
    }
  }
}

TEST_F(ConvolutionPlans, AreTheSameWhenTheyAreMadeAgain) {
  const auto again = PlanConvolutionsFor(kH100, 90);
  ASSERT_TRUE(again.ok());
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const ConvolutionProblem problem =
        OfLayer(kLayers[1], ConvolutionPass::kInputGradient, precision);
    const auto first = graphs_->Build(problem, kCardWorkspaceBytes);
    const auto second = (*again)->Build(problem, kCardWorkspaceBytes);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
    EXPECT_EQ((*first)->engine(), (*second)->engine());
  }
}

// Else its float32 copies would be for nothing (convolution_problem.h).
TEST_F(ConvolutionPlans, ThereAreNoneForFloat32SumsOfBfloat16Numbers) {
  const auto graph =
      graphs_->Build(OfLayer(kLayers[1], ConvolutionPass::kWeightGradient, Precision::kBfloat16),
                     kCardWorkspaceBytes);
  // Without a driver cuDNN cannot say of all engines.
  EXPECT_THAT(graph.status().code(),
              testing::AnyOf(absl::StatusCode::kUnimplemented, absl::StatusCode::kInternal))
      << graph.status();
}

TEST_F(ConvolutionPlans, AWorkspaceThatIsTooSmallLeadsToAnotherEngineOrToNone) {
  const ConvolutionProblem stem =
      OfLayer(kLayers[0], ConvolutionPass::kInputGradient, Precision::kBfloat16);
  const auto roomy = graphs_->Build(stem, kCardWorkspaceBytes);
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  ASSERT_GT((*roomy)->workspace_bytes(), 0);
  const auto tight = graphs_->Build(stem, (*roomy)->workspace_bytes() - 1);
  if (tight.ok()) {
    EXPECT_LT((*tight)->workspace_bytes(), (*roomy)->workspace_bytes());
  } else {
    EXPECT_EQ(tight.status().code(), absl::StatusCode::kUnimplemented) << tight.status();
  }
}

TEST_F(ConvolutionPlans, CannotBeRunWithoutTheCard) {
  const auto graph = graphs_->Build(
      OfLayer(kLayers[1], ConvolutionPass::kForward, Precision::kFloat32), kCardWorkspaceBytes);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->Run({}, nullptr).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ConvolutionPlans, NeedPropertiesThatCudnnTakes) {
  EXPECT_EQ(PlanConvolutionsFor("{}", 90).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stagecoach::cudnn
