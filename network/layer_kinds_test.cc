// The list of kinds, and what is said about a layer that cannot be built.
#include "network/layer_kinds.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/cross_attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

std::string RefusalOf(const LayerSpec& layer, const ValueType& x = ActivationType({8, 16})) {
  LayerBuilder builder(1, kInitStddev, {.vocabulary = 50, .width = 16});
  const ValueId input = builder.writer().Input(x);
  const absl::StatusOr<ValueId> y =
      BuildLayer(layer, input, {.path = "model.sequence.layers[1]"}, builder);
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument) << LayerLabel(layer);
  return std::string(y.status().message());
}

TEST(LayerKinds, AreFoundByTheirNames) {
  for (const LayerKind* kind : AllLayerKinds()) {
    EXPECT_EQ(FindLayerKind(kind->name()).value(), kind) << kind->name();
  }
  EXPECT_EQ(FindLayerKind("atention").status().message(),
            "there is no kind of layer \"atention\"; did you mean \"attention\"?");
  EXPECT_EQ(FindLayerKind("").status().code(), absl::StatusCode::kNotFound);
}

TEST(LayerKinds, AnUnknownOneIsRefusedWithItsPlaceInTheJob) {
  LayerSpec layer;
  layer.kind = "residul";
  EXPECT_EQ(RefusalOf(layer),
            "model.sequence.layers[1]: there is no kind of layer \"residul\"; did you mean "
            "\"residual\"?");
  EXPECT_EQ(RefusalOf(ResidualSpec{{GeluSpec{}, layer}}),
            "model.sequence.layers[1].residual.layers[1]: there is no kind of layer \"residul\"; "
            "did you mean \"residual\"?");
}

TEST(LayerKinds, FieldsAreRefusedWithTheirPathAndWhatIsAllowed) {
  const std::string path = "model.sequence.layers[1].";
  EXPECT_EQ(RefusalOf(LinearSpec{}), path + "linear.out: 0; must be >= 1");
  EXPECT_EQ(RefusalOf(LinearSpec{(1 << 20) + 1}), path + "linear.out: 1048577; must be <= 1048576");
  EXPECT_EQ(RefusalOf(MlpSpec{-1}), path + "mlp.hidden: -1; must be >= 1");
  EXPECT_EQ(
      RefusalOf(MlpSpec{.hidden = 4, .exact_gelu = true, .relu = true}),
      path + "mlp.relu: true; takes the place of GELU, and there is exact_gelu: leave one out");
  EXPECT_EQ(RefusalOf(SwigluSpec{}), path + "swiglu.hidden: 0; must be >= 1");
  EXPECT_EQ(RefusalOf(AttentionSpec{}), path + "attention.heads: 0; must be >= 1");
  EXPECT_EQ(RefusalOf(AttentionSpec{3}), path + "attention.heads: 3; must divide the width 16");
  EXPECT_EQ(RefusalOf(AttentionSpec{.heads = 4, .key_heads = 3}),
            path + "attention.key_heads: 3; must divide the 4 heads");
  EXPECT_EQ(RefusalOf(AttentionSpec{.heads = 3, .head_width = 5, .rotary_theta = -1}),
            path + "attention.rotary_theta: -1; must be 0 or a number in [1, 1e+12]");
  EXPECT_EQ(RefusalOf(AttentionSpec{.heads = 2, .rotary_theta = 2e12}),
            path + "attention.rotary_theta: 2e+12; must be 0 or a number in [1, 1e+12]");
  EXPECT_EQ(RefusalOf(AttentionSpec{2, 1.0}),
            path + "attention.dropout: 1; must be a number in [0, 1)");
  EXPECT_EQ(RefusalOf(DropoutSpec{-0.5}), path + "dropout.rate: -0.5; must be a number in [0, 1)");
  EXPECT_EQ(
      RefusalOf(EmbeddingSpec{std::nan("")}, ValueType{Element::kIds, Leading::kSamples, {8}}),
      path + "embedding.dropout: nan; must be a number in [0, 1)");
  EXPECT_EQ(
      RefusalOf(EmbeddingSpec{.position = false, .sinusoidal = true},
                ValueType{Element::kIds, Leading::kSamples, {8}}),
      path + "embedding.sinusoidal: true; adds positions, and there is no_position: leave one out");
  EXPECT_EQ(RefusalOf(RmsNormSpec{0}),
            path + "rms_norm.epsilon: 0; must be a number in [1e-12, 1]");
  EXPECT_EQ(RefusalOf(RmsNormSpec{1e-300}),
            path + "rms_norm.epsilon: 1e-300; must be a number in [1e-12, 1]");
  EXPECT_EQ(RefusalOf(RmsNormSpec{1.5}),
            path + "rms_norm.epsilon: 1.5; must be a number in [1e-12, 1]");
  EXPECT_EQ(RefusalOf(BatchNormSpec{.momentum = 0}),
            path + "batch_norm.momentum: 0; must be a number in [1e-06, 1]");
  EXPECT_EQ(RefusalOf(GroupNormSpec{.groups = 3}),
            path + "group_norm.groups: 3; must divide the 16 channels");
  EXPECT_EQ(RefusalOf(GroupNormSpec{.groups = 0}), path + "group_norm.groups: 0; must be >= 1");
  LayerSpec layer = LinearSpec{4};
  layer.attributes.Set("outt", int64_t{4});
  EXPECT_EQ(RefusalOf(layer), path + "linear.outt is not known; did you mean \"out\"?");
}

TEST(LayerKinds, LayersInsideOfAKindThatHasNoneAreRefused) {
  LayerSpec layer = GeluSpec{};
  layer.layers = {DropoutSpec{}};
  EXPECT_EQ(RefusalOf(layer), "model.sequence.layers[1]: gelu; has no layers inside");
}

TEST(LayerKinds, IdsAreReadByTheFirstLayerAndNoOther) {
  const ValueType ids{Element::kIds, Leading::kSamples, {8}};
  EXPECT_EQ(RefusalOf(GeluSpec{}, ids),
            "model.sequence.layers[1]: gelu; the first layer must be an embedding");
  EXPECT_EQ(RefusalOf(EmbeddingSpec{}),
            "model.sequence.layers[1]: embedding; allowed as the first layer only");
}

// What an operation refuses is an error of the job, and the layer's path stands before it.
TEST(LayerKinds, WhatAnOperationRefusesIsToldWithTheLayersPlace) {
  EXPECT_THAT(RefusalOf(LayerNormSpec{}, WeightType(Element::kActivation, {8, 16})),
              HasSubstr("model.sequence.layers[1]: layer_norm: x is activation[8, 16]"));
}

TEST(LayerKinds, RotaryPositionsNeedHeadsOfEvenWidth) {
  const std::string remedy =
      "must be even with rotary_theta: give an even head_width or other heads";
  EXPECT_EQ(
      RefusalOf(ResidualSpec{{AttentionSpec{.heads = 2, .head_width = 5, .rotary_theta = 1e4}}}),
      "model.sequence.layers[1].residual.layers[0].attention.head_width: 5; " + remedy);
  EXPECT_EQ(RefusalOf(AttentionSpec{.heads = 16, .rotary_theta = 1e4}),
            "model.sequence.layers[1].attention.head_width: 1; " + remedy)
      << "one that follows from the width";
}

// As in a config.json: a form has its numbers, and no others.
TEST(LayerKinds, RotaryScalingHasTheNumbersOfItsForm) {
  const auto refusal = [](const RotaryScalingFields& scaling, double theta = 1e4) {
    return RefusalOf(AttentionSpec{.heads = 2, .rotary_theta = theta, .scaling = scaling});
  };
  const std::string path = "model.sequence.layers[1].attention.";
  const auto linear = RotaryScalingForm::kLinear, llama3 = RotaryScalingForm::kLlama3;
  EXPECT_EQ(
      refusal({.form = linear, .factor = 2}, 0),
      path + "rotary_scaling: linear; there are no rotary positions to scale: give rotary_theta");
  EXPECT_EQ(refusal({.factor = 2}),
            path + "rotary_factor: 2; must be left out with rotary_scaling: none");
  EXPECT_EQ(refusal({.form = linear}),
            path + "rotary_factor: 0; must be given with rotary_scaling: linear");
  EXPECT_EQ(refusal({.form = linear, .factor = 0.5}),
            path + "rotary_factor: 0.5; must be 0 or a number in [1, 1e+06]");
  EXPECT_EQ(refusal({.form = linear, .factor = 2, .original_context = 8192}),
            path + "rotary_original_context: 8192; must be left out with rotary_scaling: linear");
  EXPECT_EQ(
      refusal({.form = llama3, .factor = 8, .high_frequency_factor = 4, .original_context = 8}),
      path + "rotary_low_frequency_factor: 0; must be given with rotary_scaling: llama3");
  EXPECT_EQ(
      refusal({.form = llama3, .factor = 8, .low_frequency_factor = 1, .high_frequency_factor = 4}),
      path + "rotary_original_context: 0; must be given with rotary_scaling: llama3");
  EXPECT_EQ(refusal({.form = llama3,
                     .factor = 8,
                     .low_frequency_factor = 4,
                     .high_frequency_factor = 1,
                     .original_context = 8}),
            path + "rotary_high_frequency_factor: 1; must be above rotary_low_frequency_factor 4");
  EXPECT_EQ(refusal({.form = llama3,
                     .factor = 8,
                     .low_frequency_factor = 4,
                     .high_frequency_factor = 1,
                     .original_context = -8}),
            path + "rotary_original_context: -8; must be >= 0");
}

// Each number was in its range, and the floating point operations of one sequence did not fit into
// 64 bits.
TEST(LayerKinds, HeadsThatTogetherAreTooWideAreRefused) {
  EXPECT_EQ(RefusalOf(AttentionSpec{.heads = 20000, .key_heads = 1, .head_width = 65536}),
            "model.sequence.layers[1].attention.head_width: 65536; must be <= 52 with 20000 heads "
            "and 1 key_heads: (heads + 2 * key_heads) * head_width may be 1048576");
  LayerBuilder builder(1, kInitStddev, {.vocabulary = 50, .width = 16});
  const ValueId input = builder.writer().Input(ActivationType({8, 16}));
  EXPECT_TRUE(BuildLayer(AttentionSpec{.heads = 20000, .key_heads = 1, .head_width = 52}, input,
                         {.path = "layer"}, builder)
                  .ok());
}

TEST(LayerKinds, CrossAttentionHasHeadsThatFit) {
  const auto refusal = [](const CrossAttentionSpec& spec) {
    LayerBuilder builder(1, kInitStddev, {.vocabulary = 50, .width = 16});
    LayerWriter& writer = builder.writer();
    const ValueId x = writer.Input(ActivationType({8, 16}));
    const ValueId memory = writer.Input(ActivationType({6, 10}));
    const ValueId length = writer.Input({Element::kIds, Leading::kSamples, {}}, false);
    builder.SetSideInputs({.memory = memory, .memory_length = length});
    return std::string(BuildLayer(spec, x, {.path = "layer"}, builder).status().message());
  };
  const std::string path = "layer.cross_attention.";
  EXPECT_EQ(refusal({.heads = 4}), "");
  EXPECT_EQ(refusal({.heads = 3, .head_width = 7, .dropout = 0.5, .bias = false}), "");
  EXPECT_EQ(refusal({}), path + "heads: 0; must be >= 1");
  EXPECT_EQ(refusal({.heads = 3}),
            path + "heads: 3; must divide the width 16, or give a head_width");
  EXPECT_EQ(refusal({.heads = 16, .head_width = 65536}),
            path +
                "head_width: 65536; must be <= 32768 with 16 heads: 2 * heads * head_width may be "
                "1048576");
  EXPECT_EQ(refusal({.heads = 2, .dropout = 1}), path + "dropout: 1; must be a number in [0, 1)");
  EXPECT_EQ(RefusalOf(CrossAttentionSpec{.heads = 2}),
            "model.sequence.layers[1]: cross_attention; reads an encoder's output, and there is "
            "none: list the layers of an `encoder`, or take attention");
}

// Manifests hold a digest of a text that these words are parts of.
TEST(LayerKinds, FunctionsAreTheWordsThatStandInCheckpoints) {
  EXPECT_EQ(LayerFunction(EmbeddingSpec{0.1}), "embedding");
  EXPECT_EQ(LayerFunction(LayerNormSpec{}), "layer_norm");
  EXPECT_EQ(LayerFunction(RmsNormSpec{1e-6}), "rms_norm:1e-06");
  EXPECT_EQ(LayerFunction(BatchNormSpec{.epsilon = 1e-3, .momentum = 0.2}), "batch_norm:0.001");
  EXPECT_EQ(LayerFunction(GroupNormSpec{.groups = 8}), "group_norm:8:1e-05");
  EXPECT_EQ(LayerFunction(AttentionSpec{8, 0.1}), "attention:8");
  EXPECT_EQ(LayerFunction(AttentionSpec{.heads = 8, .rotary_theta = 1e6}),
            "attention:8:rotary=1e+06");
  EXPECT_EQ(
      LayerFunction(AttentionSpec{.heads = 8,
                                  .rotary_theta = 1e6,
                                  .scaling = {.form = RotaryScalingForm::kLinear, .factor = 2.5}}),
      "attention:8:rotary=1e+06:linear=2.5");
  EXPECT_EQ(LayerFunction(AttentionSpec{.heads = 8,
                                        .rotary_theta = 5e5,
                                        .scaling = {.form = RotaryScalingForm::kLlama3,
                                                    .factor = 32,
                                                    .low_frequency_factor = 1,
                                                    .high_frequency_factor = 4,
                                                    .original_context = 8192}}),
            "attention:8:rotary=5e+05:llama3=32,1,4,8192");
  EXPECT_EQ(LayerFunction(CrossAttentionSpec{.heads = 8}), "cross_attention:8");
  EXPECT_EQ(LayerFunction(MlpSpec{64}), "mlp:64");
  EXPECT_EQ(LayerFunction(SwigluSpec{64}), "swiglu:64");
  EXPECT_EQ(LayerFunction(LinearSpec{50, false}), "linear:50");
  EXPECT_EQ(LayerFunction(GeluSpec{}), "gelu");
  EXPECT_EQ(LayerFunction(DropoutSpec{0.1}), "");
  EXPECT_EQ(LayerFunction(ResidualSpec{{DropoutSpec{}, LayerNormSpec{}, DropoutSpec{0.1},
                                        ResidualSpec{{MlpSpec{4}, GeluSpec{}}}}}),
            "residual(layer_norm residual(mlp:4 gelu))");
  EXPECT_EQ(LayerFunction(ResidualSpec{{DropoutSpec{}}}), "residual()");
}

TEST(LayerKinds, NumbersInThemAreExact) {
  EXPECT_EQ(ExactText(1e-5), "1e-05");
  EXPECT_EQ(ExactText(10000), "10000");
  EXPECT_NE(ExactText(1234567), ExactText(1234568)) << "six digits do not do";
}

TEST(LayerKinds, LabelsNameTheInnerLayers) {
  EXPECT_EQ(LayerLabel(GeluSpec{}), "gelu");
  EXPECT_EQ(LayerLabel(ResidualSpec{{LayerNormSpec{}, ResidualSpec{{GeluSpec{}}}}}),
            "residual(layer_norm, residual(gelu))");
}

TEST(LayerKinds, ProjectionsStartSmallerTheMoreLayersAddToTheTrunk) {
  const LayerSpec branch = ResidualSpec{{GeluSpec{}}};
  EXPECT_EQ(BranchStddev({}), kInitStddev);
  EXPECT_EQ(BranchStddev({GeluSpec{}, branch, LinearSpec{4}}), kInitStddev);
  EXPECT_EQ(BranchStddev({branch, GeluSpec{}, branch, branch, branch}), kInitStddev / 2);
}

// The sum belongs to the product that a branch ends with, and to nothing else.
TEST(Residual, AddsItsTrunkInTheProductThatTheBranchEndsWith) {
  const auto operations = [](std::vector<LayerSpec> inner) {
    LayerBuilder builder(1, kInitStddev);
    const ValueId x = builder.writer().Input(ActivationType({8, 16}));
    const auto y = BuildLayer(ResidualSpec{std::move(inner)}, x, {.path = "layer"}, builder);
    const BuiltLayer built = builder.Finish(y.value()).value();
    std::string text;
    for (const Call& call : built.graph.calls) {
      text += call.operation + (call.attributes.Find("residual") != nullptr &&
                                        std::get<bool>(*call.attributes.Find("residual"))
                                    ? "+ "
                                    : " ");
    }
    return text;
  };
  const LayerSpec dense = LinearSpec{16}, keep = DropoutSpec{0};
  EXPECT_EQ(operations({dense}), "linear+ ");
  EXPECT_EQ(operations({dense, dense}), "linear linear+ ");
  EXPECT_EQ(operations({MlpSpec{4}}), "linear linear+ ");
  EXPECT_EQ(operations({SwigluSpec{4}}), "linear linear swiglu linear+ ");
  EXPECT_EQ(operations({AttentionSpec{2}}), "linear attention linear+ ");
  EXPECT_EQ(operations({dense, GeluSpec{}}), "linear gelu add ");
  EXPECT_EQ(operations({dense, keep}), "linear add ") << "the last layer is no product";
  EXPECT_EQ(operations({ResidualSpec{{dense}}}), "linear+ add ") << "it adds already";
  EXPECT_EQ(operations({keep}), "add ");
}

}  // namespace
}  // namespace stagecoach
