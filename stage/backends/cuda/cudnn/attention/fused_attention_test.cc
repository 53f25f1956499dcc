#include "stage/backends/cuda/cudnn/attention/fused_attention.h"

#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/attention/attention.h"
#include "stage/backends/cuda/cudnn/testing/host_graphs.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::cudnn {
namespace {

using testing::Each;
using testing::HasSubstr;

AttentionShape Small(int64_t sequences = 2, int64_t heads = 4) {
  return {.sequences = sequences, .context = 128, .heads = heads, .width = heads * 8};
}

// Attention by host graphs, and its tensors in BF16 with float32 twins for the reference.
class Case {
 public:
  explicit Case(int64_t score_bytes = kScoreBytes, int64_t limit_bytes = 0)
      : allocator(MakeHostAllocator(limit_bytes)),
        fused(std::make_unique<HostGraphs>(&log), allocator.get(), {fixed, sizeof fixed},
              score_bytes) {}

  Tensor Make(DType dtype, Shape shape) {
    auto tensor = MakeTensor(*tensors, MemoryKind::kActivations, dtype, std::move(shape));
    CHECK_OK(tensor.status());
    std::fill_n(tensor->raw(), tensor->bytes(), std::byte{0xff});  // outputs are not read
    return *std::move(tensor);
  }
  // The same numbers in both types.
  std::pair<Tensor, Tensor> Normal(Shape shape, uint32_t operation) {
    const Tensor narrow = Make(DType::kBF16, shape), wide = Make(DType::kF32, shape);
    const RandomStream stream = {.seed = 5, .operation = operation};
    for (int64_t i = 0; i < wide.elements(); ++i) {
      const Bfloat16 value(RandomNormal(stream, static_cast<uint64_t>(i)));
      narrow.data<Bfloat16>()[i] = value;
      wide.data<float>()[i] = static_cast<float>(value);
    }
    return {narrow, wide};
  }
  AttentionForwardArgs ForwardArgs(const AttentionShape& shape) {
    const int64_t n = shape.sequences * shape.context;
    return {.shape = shape,
            .qkv = Normal({n, 3 * shape.width}, 1).first,
            .out = Make(DType::kBF16, {n, shape.width}),
            .log_sum_exp = Make(DType::kF32, {shape.sequences, shape.heads, shape.context})};
  }
  AttentionBackwardArgs BackwardArgs(const AttentionForwardArgs& forward) {
    const int64_t n = forward.qkv.shape()[0];
    return {.shape = forward.shape,
            .d_out = Normal({n, forward.shape.width}, 2).first,
            .qkv = forward.qkv,
            .out = forward.out,
            .log_sum_exp = forward.log_sum_exp,
            .d_qkv = Make(DType::kBF16, {n, 3 * forward.shape.width})};
  }

  HostLog log;
  std::byte fixed[100];
  std::unique_ptr<Allocator> allocator;  // of the workspace
  std::unique_ptr<Allocator> tensors = MakeHostAllocator(0);
  FusedAttention fused;
};

void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.elements(), expected.elements());
  for (int64_t i = 0; i < actual.elements(); ++i) {
    const float a = actual.dtype() == DType::kBF16 ? static_cast<float>(actual.data<Bfloat16>()[i])
                                                   : actual.data<float>()[i];
    ASSERT_NEAR(a, expected.data<float>()[i], tolerance) << "element " << i;
  }
}

void ExpectReference(Case& c, const AttentionShape& shape) {
  const AttentionForwardArgs forward = c.ForwardArgs(shape);
  const AttentionBackwardArgs backward = c.BackwardArgs(forward);
  const auto did_forward = c.fused.Forward(forward), did_backward = c.fused.Backward(backward);
  ASSERT_TRUE(did_forward.ok() && *did_forward) << did_forward.status();
  ASSERT_TRUE(did_backward.ok() && *did_backward) << did_backward.status();

  const int64_t n = shape.sequences * shape.context;
  const auto reference = MakeReferenceBackend({});
  const Attributes attributes = ToAttributes(AttentionAttributes{.heads = shape.heads});
  const Tensor qkv = c.Normal({n, 3 * shape.width}, 1).second,
               out = c.Make(DType::kF32, {n, shape.width}),
               log_sum_exp = c.Make(DType::kF32, {shape.sequences, shape.heads, shape.context}),
               d_out = c.Normal({n, shape.width}, 2).second,
               d_qkv = c.Make(DType::kF32, {n, 3 * shape.width});
  RunOn(*reference, {.operation = "attention",
                     .attributes = attributes,
                     .inputs = {qkv},
                     .outputs = {out, log_sum_exp},
                     .samples = shape.sequences});
  RunOn(*reference, {.operation = "attention_gradient",
                     .attributes = attributes,
                     .inputs = {d_out, qkv, out, log_sum_exp},
                     .outputs = {d_qkv},
                     .samples = shape.sequences});
  ExpectNear(forward.out, out, 2e-2);
  ExpectNear(forward.log_sum_exp, log_sum_exp, 1e-4);
  ExpectNear(backward.d_qkv, d_qkv, 4e-2);
}

TEST(FusedAttention, AWholeMicroBatchIsThatOfTheReference) {
  Case c;
  ExpectReference(c, Small());
  EXPECT_EQ(c.log.forward_runs, 1);
  EXPECT_EQ(c.log.backward_runs, 1);
}

TEST(FusedAttention, SlicesOfSequencesAreThoseOfTheReference) {
  Case c(2 * 4 * 128 * 128 * 2);
  ExpectReference(c, Small(4));
  EXPECT_EQ(c.log.forward_runs, 1);
  EXPECT_EQ(c.log.backward_runs, 2);
}

TEST(FusedAttention, SlicesOfHeadsAreThoseOfTheReference) {
  Case c(3 * 128 * 128 * 2);
  ExpectReference(c, Small(2, 4));
  EXPECT_EQ(c.log.backward_runs, 4) << "two heads of one sequence at a time";
}

TEST(FusedAttention, PlansAreMadeOnceForAShape) {
  Case c;
  const AttentionForwardArgs forward = c.ForwardArgs(Small());
  EXPECT_TRUE(*c.fused.Forward(forward));
  ASSERT_EQ(c.log.built.size(), 2u) << "backward too, before anything is kept for it";
  EXPECT_TRUE(*c.fused.Forward(forward));
  EXPECT_TRUE(*c.fused.Backward(c.BackwardArgs(forward)));
  EXPECT_EQ(c.log.built.size(), 2u);
  EXPECT_TRUE(*c.fused.Forward(c.ForwardArgs(Small(1))));
  EXPECT_TRUE(*c.fused.Forward(c.ForwardArgs(Small(2, 2))));
  EXPECT_EQ(c.log.built.size(), 6u);
}

TEST(FusedAttention, WhatCudnnDoesNotSupportIsForOwnKernelsInBothDirections) {
  for (const bool forward_refused : {true, false}) {
    Case c;
    (forward_refused ? c.log.forward : c.log.backward) = absl::UnimplementedError("no engine");
    const AttentionForwardArgs forward = c.ForwardArgs(Small());
    for (int time = 0; time < 2; ++time) {
      const auto did = c.fused.Forward(forward);
      ASSERT_TRUE(did.ok()) << did.status();
      EXPECT_FALSE(*did);
      EXPECT_FALSE(*c.fused.Backward(c.BackwardArgs(forward)));
    }
    EXPECT_EQ(c.log.built.size(), forward_refused ? 1u : 2u) << "asked once";
    EXPECT_EQ(c.log.forward_runs + c.log.backward_runs, 0);
  }
}

// Two stages said the same fingerprint, "attention cuDNN", and one of them computed by own kernels.
TEST(FusedAttention, SaysBeforeTheFirstStepWhoWillComputeAShape) {
  Case takes, refuses, breaks;
  refuses.log.backward = absl::UnimplementedError("no engine");
  breaks.log.forward = absl::InternalError("no libnvrtc");
  EXPECT_EQ(takes.fused.Way(Small(), DType::kBF16)->way, "cuDNN");
  EXPECT_EQ(takes.log.built.size(), 2u);
  EXPECT_TRUE(*takes.fused.Forward(takes.ForwardArgs(Small())));
  EXPECT_EQ(takes.log.built.size(), 2u) << "the plans are those of the answer";
  EXPECT_EQ(refuses.fused.Way(Small(), DType::kBF16)->way, "own kernels");
  EXPECT_THAT(refuses.fused.Way(Small(), DType::kBF16)->why, HasSubstr("does not support"));
  EXPECT_EQ(takes.fused.Way(Small(), DType::kF32)->way, "own kernels");
  EXPECT_THAT(takes.fused.Way(Small(), DType::kF32)->why, HasSubstr("F32"));
  EXPECT_EQ(breaks.fused.Way(Small(), DType::kBF16).status(), breaks.log.forward);
}

TEST(FusedAttention, OtherErrorsAreNotHiddenByOwnKernels) {
  Case build, run;
  build.log.backward = absl::InternalError("no libnvrtc");
  EXPECT_EQ(build.fused.Forward(build.ForwardArgs(Small())).status(), build.log.backward);
  EXPECT_EQ(build.log.forward_runs, 0);
  run.log.run = absl::InternalError("execution failed");
  EXPECT_EQ(run.fused.Forward(run.ForwardArgs(Small())).status(), run.log.run);
}

TEST(FusedAttention, WithoutCudnnOwnKernelsDoEverything) {
  const auto allocator = MakeHostAllocator(0);
  FusedAttention fused(absl::UnavailableError("cuDNN was not found"), allocator.get(), {});
  Case tensors;
  const AttentionForwardArgs forward = tensors.ForwardArgs(Small());
  EXPECT_FALSE(*fused.Forward(forward));
  EXPECT_FALSE(*fused.Backward(tensors.BackwardArgs(forward)));
  EXPECT_THAT(fused.WhyOwn(Small(), DType::kBF16), HasSubstr("not found"));
  EXPECT_EQ(fused.fingerprint(), "attention by own kernels") << "for whatever reason";
  EXPECT_EQ(tensors.fused.fingerprint(), "attention plain loops");
  EXPECT_EQ(fused.kernels(), std::nullopt) << "a forecast counts what is there";
  EXPECT_EQ(tensors.fused.kernels(), Attention());
}

TEST(FusedAttention, DropoutAndFloat32AskNobody) {
  Case c;
  AttentionForwardArgs forward = c.ForwardArgs(Small());
  forward.shape.dropout = 0.1;
  EXPECT_FALSE(*c.fused.Forward(forward));
  forward = c.ForwardArgs(Small());
  forward.qkv = c.Make(DType::kF32, forward.qkv.shape());
  EXPECT_FALSE(*c.fused.Forward(forward));
  EXPECT_TRUE(c.log.built.empty());
}

TEST(FusedAttention, SmallWorkspacesAreTheFixedOne) {
  Case c;
  c.log.workspace_bytes = sizeof c.fixed;
  const AttentionForwardArgs forward = c.ForwardArgs(Small());
  EXPECT_TRUE(*c.fused.Forward(forward));
  EXPECT_TRUE(*c.fused.Backward(c.BackwardArgs(forward)));
  EXPECT_THAT(c.log.workspaces, Each(static_cast<void*>(c.fixed)));
  EXPECT_EQ(c.allocator->Use().total_peak, 0);
}

TEST(FusedAttention, LargeWorkspacesAreAccountedAndGivenBack) {
  Case c(1);  // one head at a time
  c.log.workspace_bytes = 1000;
  const AttentionForwardArgs forward = c.ForwardArgs(Small());
  EXPECT_TRUE(*c.fused.Backward(c.BackwardArgs(forward)));
  EXPECT_EQ(c.log.backward_runs, 8);
  const MemoryUse use = c.allocator->Use();
  EXPECT_GE(use.peak[static_cast<int>(MemoryKind::kWorkspace)], 1000);
  EXPECT_LT(use.total_peak, 2000) << "slices share one";
  EXPECT_EQ(use.total_current, 0);
}

// What a shape's results are must not depend on how much memory is free, so there is no way round.
TEST(FusedAttention, AWorkspaceThatIsNotToBeHadIsAnError) {
  Case c(kScoreBytes, 500);
  c.log.workspace_bytes = 1000;
  const auto did = c.fused.Forward(c.ForwardArgs(Small()));
  EXPECT_EQ(did.status().code(), absl::StatusCode::kResourceExhausted) << did.status();
  EXPECT_THAT(std::string(did.status().message()), HasSubstr("workspace"));
  EXPECT_EQ(c.log.forward_runs, 0);
}

}  // namespace
}  // namespace stagecoach::cudnn
