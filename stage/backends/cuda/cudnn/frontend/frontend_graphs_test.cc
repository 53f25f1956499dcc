// What can be had from cudnn-frontend without a card: its checks of the graphs' descriptions
// against its tables for a card and the version of cuDNN that is here. Building and running plans
// needs one: cuda_attention_test.cc.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/cudnn/frontend/attention_graph_builder.h"

namespace stagecoach::cudnn {
namespace {

using testing::HasSubstr;

class Descriptions : public testing::Test {
 protected:
  void SetUp() override {
    const auto library = UseCudnn();
    if (!library.ok()) GTEST_SKIP() << "needs cuDNN: " << library.status();
    version_ = library->version;
  }
  static absl::Status Check(Direction direction, AttentionProblem problem, AttentionSlice slice,
                            int capability) {
    return CheckDescription(direction, LayoutsOf(problem, slice), capability);
  }

  int version_ = 0;
};

constexpr AttentionProblem kGpt = {.sequences = 4, .context = 1024, .heads = 12, .head_width = 64};

TEST_F(Descriptions, TheLibraryTellsItsVersion) { EXPECT_EQ(version_ / 10000, 9); }

TEST_F(Descriptions, WhatIsForCudnnIsAcceptedForWholeMicroBatchesAndForSlices) {
  for (const int capability : {80, 86, 89, 90}) {
    ASSERT_EQ(WhyNotOnThisCard({version_, capability}), "");
    for (const int64_t head_width : {8, 64, 80, 128}) {
      AttentionProblem problem = kGpt;
      problem.head_width = head_width;
      EXPECT_EQ(Check(Direction::kForward, problem, WholeOf(problem), capability),
                absl::OkStatus());
      for (const AttentionSlice slice : {WholeOf(problem), AttentionSlice{2, 12}, {1, 4}, {1, 1}}) {
        EXPECT_EQ(Check(Direction::kBackward, problem, slice, capability), absl::OkStatus())
            << "sm_" << capability << ", " << slice.sequences << " x " << slice.heads;
      }
    }
  }
}

// The rules of attention_choice.cc are no looser than the headers' own.
TEST_F(Descriptions, WhatOwnKernelsTakeForTheirWidthIsRefusedOnAmpere) {
  for (const int64_t head_width : {4, 20, 136}) {
    AttentionProblem problem = kGpt;
    problem.head_width = head_width;
    const absl::Status status = Check(Direction::kBackward, problem, WholeOf(problem), 80);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("hidden_dim"));
  }
}

TEST_F(Descriptions, LogSumExpMustBePacked) {
  if (version_ >= 92600) GTEST_SKIP() << "cuDNN " << VersionText(version_) << " takes any layout";
  AttentionLayouts layouts = LayoutsOf(kGpt, {2, 4});
  layouts.log_sum_exp.strides[0] = kGpt.heads * kGpt.context;
  const absl::Status status = CheckDescription(Direction::kBackward, layouts, 90);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

}  // namespace
}  // namespace stagecoach::cudnn
