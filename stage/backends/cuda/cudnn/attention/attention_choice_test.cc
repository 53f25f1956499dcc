#include "stage/backends/cuda/cudnn/attention/attention_choice.h"

#include "devices/card/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/attributes.h"
#include "stage/backends/cuda/cudnn/attention/attention_rules.h"

namespace stagecoach::cudnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr CudnnOffer kHopper = {.version = 91900, .compute_capability = 90};

AttentionShape Gpt(int64_t context = 1024, int64_t heads = 12, int64_t head_width = 64) {
  return {.sequences = 4, .context = context, .heads = heads, .width = heads * head_width};
}

std::string Why(const AttentionShape& shape, const CudnnOffer& offer = kHopper,
                DType dtype = DType::kBF16) {
  return WhyOwnKernels(shape, dtype, offer);
}

// As a planner sees it, of a card with cuDNN.
std::string WhyPlanned(const AttentionShape& shape, Precision precision) {
  const Call call = {.operation = "attention",
                     .attributes = ToAttributes(AttentionAttributes{.heads = shape.heads,
                                                                    .dropout = shape.dropout,
                                                                    .key_heads = shape.key_heads,
                                                                    .full = shape.full})};
  const CallTypes types = {{ActivationType({shape.context, shape.packed_width()})}, {}, {}};
  return DescribeOnCard({.attention = Attention()}, call, types, shape.sequences, precision).why;
}

TEST(AttentionChoice, ShapesOfTransformersInBfloat16AreForCudnn) {
  for (const int64_t context : {128, 1024, 1152, 4096}) {
    for (const int64_t head_width : {8, 64, 80, 128}) {
      EXPECT_THAT(Why(Gpt(context, 12, head_width)), IsEmpty());
      EXPECT_THAT(Why(Gpt(context, 12, head_width), {91002, 80}), IsEmpty());
    }
  }
}

TEST(AttentionChoice, Float32IsForOwnKernels) {
  EXPECT_THAT(Why(Gpt(), kHopper, DType::kF32), HasSubstr("F32"));
}

TEST(AttentionChoice, SharedKeyHeadsAreForOwnKernels) {
  AttentionShape shape = Gpt();
  shape.key_heads = 4;
  EXPECT_THAT(Why(shape), HasSubstr("key heads"));
  shape.key_heads = 12;
  EXPECT_THAT(Why(shape), IsEmpty());
}

TEST(AttentionChoice, AttentionWithoutACausalMaskIsForOwnKernels) {
  AttentionShape shape = Gpt();
  shape.full = true;
  EXPECT_THAT(Why(shape), HasSubstr("causal mask"));
  EXPECT_THAT(WhyPlanned(shape, Precision::kBfloat16), HasSubstr("causal mask"));
}

TEST(AttentionChoice, DropoutIsForOwnKernels) {
  AttentionShape shape = Gpt();
  shape.dropout = 0.1;
  EXPECT_THAT(Why(shape), HasSubstr("dropout"));
}

TEST(AttentionChoice, ContextsThatFillNoWholeTilesAreForOwnKernels) {
  for (const int64_t context : {0, 1, 64, 100, 192, 1088}) {
    EXPECT_THAT(Why(Gpt(context)), HasSubstr("no multiple of 128")) << context;
  }
}

TEST(AttentionChoice, HeadsThatCudnnRefusesAreForOwnKernels) {
  for (const int64_t head_width : {1, 4, 20, 100, 136, 256}) {
    EXPECT_THAT(Why(Gpt(1024, 2, head_width)), HasSubstr("heads are")) << head_width;
  }
}

// The memory forecast counts a workspace for the shapes that may come here, and for no others.
TEST(AttentionChoice, IsThePlannersWhereCudnnIsAtItsBest) {
  int taken = 0;
  for (const int64_t context : {1, 64, 100, 128, 192, 1024}) {
    for (const int64_t head_width : {4, 8, 20, 64, 128, 136}) {
      for (const double dropout : {0.0, 0.1}) {
        for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
          for (const int64_t key_heads : {0, 1}) {
            AttentionShape shape = Gpt(context, 3, head_width);
            shape.dropout = dropout;
            shape.key_heads = key_heads;
            const bool takes = Why(shape, kHopper, ComputeDType(precision)).empty();
            taken += takes ? 1 : 0;
            EXPECT_EQ(WhyPlanned(shape, precision).empty(), takes)
                << context << " " << head_width << " " << dropout << " " << key_heads << " "
                << PrecisionName(precision);
          }
        }
      }
    }
  }
  EXPECT_EQ(taken, 2 * 3);
}

TEST(AttentionChoice, VersionsThatAreKnownToBeWrongAreNotUsed) {
  EXPECT_EQ(VersionText(91002), "9.10.2");
  for (const int version : {0, 90100, 91000, 91001}) {
    EXPECT_THAT(Why(Gpt(), {version, 90}), HasSubstr("older than 9.10.2")) << version;
  }
  EXPECT_THAT(Why(Gpt(), {91800, 100}), HasSubstr("older than 9.18.1"));
  EXPECT_THAT(Why(Gpt(), {91801, 103}), IsEmpty());
}

TEST(AttentionChoice, CardsWithoutAPromiseOfEqualBitsAreForOwnKernels) {
  EXPECT_THAT(Why(Gpt(), {91900, 120}), HasSubstr("12.0"));
}

}  // namespace
}  // namespace stagecoach::cudnn
