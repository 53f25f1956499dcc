// Names of arrays in other programs, and how these lay them out.
#include "network/names/weight_names.h"

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/name_patterns.h"
#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"
#include "network/names/name_tables.h"
#include "network/zoo/bert.h"
#include "network/zoo/every_network_testing.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "network/zoo/vit.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsSupersetOf;

ResnetSpec Imagenet(int64_t depth) {
  return {.image = {64, 64, 3},
          .classes = 10,
          .depth = depth,
          .width = 4,
          .form = ResnetForm::kImagenet};
}

VitSpec NamedVit() {
  return {.image = {6, 9, 2},
          .classes = 5,
          .patch = 3,
          .layers = 2,
          .width = 8,
          .heads = 2,
          .hidden = 12,
          .dropout = 0.1};
}

GptSpec NamedGpt() { return {.layers = 2, .width = 8, .heads = 2, .context = 6, .vocabulary = 11}; }

BertSpec NamedBert() {
  return {.layers = 2, .width = 8, .heads = 2, .context = 6, .vocabulary = 11};
}

LlamaSpec NamedLlama() {
  return {.layers = 2,
          .width = 8,
          .heads = 4,
          .key_heads = 2,
          .hidden = 12,
          .context = 6,
          .vocabulary = 11};
}

// row: of ours, where the part begins.
std::string TextOf(const WeightName& name, const WeightPart& part, int64_t row) {
  return absl::StrCat(
      part.tensor, " ", part.shape.ToString(), " is ",
      name.parts.size() > 1 ? absl::StrCat("rows ", row, " to ", row + part.rows, " of ") : "",
      name.ours, " ", name.shape.ToString(),
      part.aliases.empty() ? "" : absl::StrCat(", once ", absl::StrJoin(part.aliases, " or ")),
      "\n");
}

std::string TextOf(const Network& network, const char* program = "torchvision") {
  std::string text;
  const WeightTable table = *WeightNames(network, program);
  for (const WeightName& name : table.names) {
    int64_t row = 0;
    for (const WeightPart& part : name.parts) {
      text += TextOf(name, part, row);
      row += part.rows;
    }
  }
  for (const WeightCopy& copy : table.copies) {
    absl::StrAppend(&text, copy.tensor, " equals ", copy.of, "\n");
  }
  return text;
}

std::string NamesRefusal(const Network& network, const char* table = "torchvision") {
  return std::string(WeightNames(network, table).status().message());
}

TEST(WeightNames, OfTorchvisionsResnetsStayAsTheyAre) {
  ExpectGolden("weight_names_resnet18.txt", TextOf(ExpandedOf(Imagenet(18))));
  ExpectGolden("weight_names_resnet50.txt", TextOf(ExpandedOf(Imagenet(50))));
}

TEST(WeightNames, OfTransformersStayAsTheyAre) {
  ExpectGolden("weight_names_vit_torchvision.txt", TextOf(ExpandedOf(NamedVit())));
  ExpectGolden("weight_names_vit_timm.txt", TextOf(ExpandedOf(NamedVit()), "timm"));
}

TEST(WeightNames, OfAVitsPositionsTellTheGrid) {
  const Network network = ExpandedOf(NamedVit());
  for (const char* names : {"stagecoach", "torchvision", "timm"}) {
    const WeightTable table = *WeightNames(network, names);
    for (const WeightName& name : table.names) {
      const bool positions = name.ours == "model/0000/position";
      EXPECT_EQ(name.patches.has_value(), positions) << name.ours;
      if (!positions) continue;
      EXPECT_EQ(*name.patches, (PatchGrid{.first_row = 1, .size = {2, 3}}));
    }
  }
  const WeightTable gpt = *WeightNames(ExpandedOf(NamedGpt()), "stagecoach");
  for (const WeightName& name : gpt.names) {  // its positions are of tokens
    EXPECT_FALSE(name.patches.has_value()) << name.ours;
  }
}

TEST(WeightNames, OfTimmsResnetsAreTorchvisions) {
  const Network network = ExpandedOf(Imagenet(50));
  EXPECT_EQ(TextOf(network, "timm"), TextOf(network));
}

TEST(WeightNames, OfHuggingFacesGpt2StayAsTheyAre) {
  GptSpec spec = NamedGpt();
  ExpectGolden("weight_names_gpt2.txt", TextOf(ExpandedOf(spec), "huggingface"));
  spec.tied_embeddings = true;
  spec.dropout = 0.1;
  ExpectGolden("weight_names_gpt2_tied.txt", TextOf(ExpandedOf(spec), "huggingface"));
}

TEST(WeightNames, OfHuggingFacesBertStayAsTheyAre) {
  ExpectGolden("weight_names_bert.txt", TextOf(ExpandedOf(NamedBert()), "huggingface"));
}

TEST(WeightNames, OfHuggingFacesLlamaStayAsTheyAre) {
  LlamaSpec spec = NamedLlama();
  ExpectGolden("weight_names_llama.txt", TextOf(ExpandedOf(spec), "huggingface"));
  spec.tied_embeddings = true;
  spec.qk_norm = true;
  spec.head_width = 6;
  ExpectGolden("weight_names_llama_tied.txt", TextOf(ExpandedOf(spec), "huggingface"));
}

// The same layers, listed: with the biases of Qwen2 and those that Llama may have.
TEST(WeightNames, OfHuggingFaceAreThoseOfListedLayersToo) {
  SequenceSpec list{.width = 8, .context = 6, .vocabulary = 11};
  list.layers.push_back(EmbeddingSpec{.position = false});
  list.layers.push_back(ResidualSpec{
      {RmsNormSpec{}, AttentionSpec{.heads = 4, .key_heads = 2, .rotary_theta = 1e4}}});
  list.layers.push_back(ResidualSpec{{RmsNormSpec{}, SwigluSpec{.hidden = 12}}});
  list.layers.push_back(RmsNormSpec{});
  list.layers.push_back(LinearSpec{.out = 11, .bias = false});
  EXPECT_THAT(TextOf(ExpandedOf(list), "huggingface"),
              AllOf(HasSubstr("model.layers.0.self_attn.k_proj.bias [4] is rows 8 to 12 of "
                              "model/0001/attention.qkv.bias [16], once "
                              "layers.0.self_attn.k_proj.bias\n"),
                    HasSubstr("model.layers.0.self_attn.o_proj.bias [8] is model/0001/")));
}

TEST(WeightNames, OfDocumentsKeptApartAreTheSame) {
  LlamaSpec llama = NamedLlama();
  GptSpec gpt = NamedGpt();
  const std::string llama_names = TextOf(ExpandedOf(llama), "huggingface");
  const std::string gpt_names = TextOf(ExpandedOf(gpt), "huggingface");
  llama.documents = gpt.documents = true;
  EXPECT_EQ(TextOf(ExpandedOf(llama), "huggingface"), llama_names);
  EXPECT_EQ(TextOf(ExpandedOf(gpt), "huggingface"), gpt_names);
}

// Masks and angles that earlier versions of the library stored.
TEST(WeightNames, OfHuggingFaceLeaveItsBuffersOut) {
  const auto ignored = [](const NetworkSpec& spec) {
    return WeightNames(ExpandedOf(spec), "huggingface")->ignored;
  };
  EXPECT_THAT(ignored(NamedGpt()), IsSupersetOf({"*.attn.bias", "*.attn.masked_bias"}));
  EXPECT_THAT(ignored(NamedLlama()), IsSupersetOf({"*rotary_emb.inv_freq"}));
  EXPECT_THAT(ignored(NamedBert()), IsSupersetOf({"*pooler.dense.weight"}));
  EXPECT_FALSE(MatchesPattern("*.attn.bias", "transformer.h.0.attn.c_attn.bias"));
}

TEST(WeightNames, OfHuggingFaceAreRefusedForNetworksThatItHasNot) {
  const auto refusal = [](const NetworkSpec& spec) {
    return NamesRefusal(ExpandedOf(spec), "huggingface");
  };
  EXPECT_EQ(refusal(NamedVit()),
            "the network is none that huggingface has names for: it has 6 layers; a bert "
            "is, a gpt and a llama");
  // Layers of GPT-2 with rotary positions, and without the positions of its own.
  SequenceSpec list{.width = 8, .context = 6, .vocabulary = 11};
  list.layers.push_back(EmbeddingSpec{});
  list.layers.push_back(
      ResidualSpec{{RmsNormSpec{}, AttentionSpec{.heads = 2, .rotary_theta = 1e4}}});
  list.layers.push_back(ResidualSpec{{RmsNormSpec{}, SwigluSpec{.hidden = 12}}});
  list.layers.push_back(RmsNormSpec{});
  list.layers.push_back(LinearSpec{.out = 11, .bias = false});
  EXPECT_THAT(refusal(list), HasSubstr("it has model/0000/position.weight; a bert is"));
}

// Each number of ours is somewhere in the other program's tensors, and each of theirs in ours.
void ExpectEveryNumberOnce(const Network& network, const char* program) {
  std::set<std::string> ours, others;
  int64_t numbers = 0;
  const WeightTable table = *WeightNames(network, program);
  for (const WeightName& name : table.names) {
    EXPECT_TRUE(ours.insert(name.ours).second) << name.ours;
    int64_t elements = 0;
    for (const WeightPart& part : name.parts) {
      EXPECT_TRUE(others.insert(part.tensor).second) << part.tensor;
      elements += part.shape.elements();
    }
    EXPECT_EQ(elements, name.shape.elements()) << name.ours;
    if (!name.ours.ends_with("running_mean") && !name.ours.ends_with("running_variance")) {
      numbers += name.shape.elements();
    }
  }
  EXPECT_EQ(numbers, ParametersOf(network));
}

TEST(WeightNames, OfEveryDepthAreThere) {
  for (const int64_t depth : {18, 34, 50, 101, 152}) {
    SCOPED_TRACE(depth);
    ExpectEveryNumberOnce(ExpandedOf(Imagenet(depth)), "torchvision");
  }
  const Network base = ExpandedOf(
      VitSpec{.image = {224, 224, 3}, .classes = 1000, .layers = 12, .width = 768, .heads = 12});
  ExpectEveryNumberOnce(base, "torchvision");
  ExpectEveryNumberOnce(base, "timm");
  ExpectEveryNumberOnce(ExpandedOf(GptSpec{.layers = 12,
                                           .width = 768,
                                           .heads = 12,
                                           .context = 1024,
                                           .vocabulary = 50257,
                                           .tied_embeddings = true}),
                        "huggingface");
  ExpectEveryNumberOnce(ExpandedOf(LlamaSpec{.layers = 28,
                                             .width = 1024,
                                             .heads = 16,
                                             .key_heads = 8,
                                             .head_width = 128,
                                             .hidden = 3072,
                                             .context = 64,
                                             .vocabulary = 151936,
                                             .qk_norm = true}),
                        "huggingface");
}

TEST(WeightNames, OfOurOwnAreThoseOfEveryNetwork) {
  for (const ZooEntry& entry : ZooEntries()) {
    SCOPED_TRACE(entry.name);
    const auto names = WeightNames(ExpandedOf(entry.spec), "stagecoach");
    ASSERT_TRUE(names.ok()) << names.status();
    for (const WeightName& name : names->names) {
      ASSERT_EQ(name.parts.size(), 1u);
      EXPECT_EQ(name.parts[0].tensor, name.ours);
      EXPECT_EQ(name.parts[0].shape, name.shape);
    }
  }
}

std::vector<float> Counted(const Shape& shape, float first = 0) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), first);
  return values;
}

// One channel of one filter stands as a whole in PyTorch, and channels stand side by side here.
TEST(WeightNames, AConvolutionsWeightIsLaidOutAsPyTorchHasIt) {
  const WeightName name{
      .ours = "c", .shape = {2, 3, 4, 5}, .parts = {ConvolutionTensor("c", {2, 3, 4, 5})}};
  EXPECT_EQ(name.parts[0].shape, Shape({2, 5, 3, 4}));
  const std::vector<float> ours = Counted(name.shape);
  std::vector<float> other(ours.size()), back(ours.size());
  ToTensor(name, 0, ours, other);
  // [o=1, i=2, h=0, w=3] of the other is [o=1, h=0, w=3, i=2] of ours.
  EXPECT_EQ(other[((1 * 5 + 2) * 3 + 0) * 4 + 3], ours[((1 * 3 + 0) * 4 + 3) * 5 + 2]);
  FromTensor(name, 0, other, back);
  EXPECT_EQ(back, ours);
}

TEST(WeightNames, AMatrixMayBeTransposed) {
  const WeightName name{
      .ours = "m", .shape = {2, 3}, .parts = {PermutedTensor("m", {2, 3}, {1, 0})}};
  EXPECT_EQ(name.parts[0].shape, Shape({3, 2}));
  const std::vector<float> theirs = {0, 1, 10, 11, 20, 21};
  std::vector<float> ours(6), back(6);
  FromTensor(name, 0, theirs, ours);
  EXPECT_EQ(ours, (std::vector<float>{0, 10, 20, 1, 11, 21}));
  ToTensor(name, 0, ours, back);
  EXPECT_EQ(back, theirs);
}

// As q_proj, k_proj and v_proj of Llama.
TEST(WeightNames, AnArrayMayBeSeveralTensorsOneAfterTheOther) {
  const WeightName name{
      .ours = "qkv",
      .shape = {4, 2},
      .parts = {WholeTensor("q", {2, 2}), WholeTensor("k", {1, 2}), WholeTensor("v", {1, 2})}};
  std::vector<float> ours(8);
  FromTensor(name, 0, std::vector<float>{1, 2, 3, 4}, ours);
  FromTensor(name, 1, std::vector<float>{5, 6}, ours);
  FromTensor(name, 2, std::vector<float>{7, 8}, ours);
  EXPECT_EQ(ours, Counted(name.shape, 1));
  std::vector<float> key(2);
  ToTensor(name, 1, ours, key);
  EXPECT_EQ(key, (std::vector<float>{5, 6}));
}

// As one fused tensor of another program, [in, out], for three arrays here.
TEST(WeightNames, ATensorMayBeSeveralArraysOneAfterTheOther) {
  const Shape fused{2, 6};
  std::vector<float> tensor = Counted(fused), back(tensor.size(), -1);
  for (int i = 0; i < 3; ++i) {
    WeightPart part = PermutedTensor("fused", {6, 2}, {1, 0});
    part.first = 2 * i;
    part.rows = 2;
    const WeightName name{.ours = "one", .shape = {2, 2}, .parts = {part}};
    std::vector<float> ours(4);
    FromTensor(name, 0, tensor, ours);
    const float column = static_cast<float>(2 * i);
    EXPECT_EQ(ours, (std::vector<float>{column, column + 6, column + 1, column + 7}));
    ToTensor(name, 0, ours, back);
  }
  EXPECT_EQ(back, tensor);
}

TEST(WeightNames, OnesInFrontOfATensorAreNoAxesHere) {
  const WeightName name{.ours = "p", .shape = {3}, .parts = {TensorWithOnes("p", {3})}};
  EXPECT_EQ(name.parts[0].shape, Shape({1, 1, 3}));
  std::vector<float> ours(3);
  FromTensor(name, 0, std::vector<float>{4, 5, 6}, ours);
  EXPECT_EQ(ours, (std::vector<float>{4, 5, 6}));
}

TEST(WeightNames, OfTorchvisionAreRefusedForNetworksThatItHasNot) {
  EXPECT_THAT(
      NamesRefusal(
          ExpandedOf(GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 10})),
      HasSubstr("the network is none that torchvision has names for: it does not begin with "
                "the stem imagenet; a resnet with form: imagenet and norm: batch is, and a vit"));
  ResnetSpec groups = Imagenet(18);
  groups.norm = ResnetNorm::kGroup;
  groups.groups = 2;
  EXPECT_THAT(NamesRefusal(ExpandedOf(groups)), HasSubstr("it has group_norm.weight"));
  // These were written as layer1 to layer3, which load_state_dict refuses.
  EXPECT_THAT(NamesRefusal(ExpandedOf(
                  ResnetSpec{.image = {32, 32, 3}, .classes = 10, .stem = ResnetStem::kImagenet})),
              HasSubstr("it has 3 stages of blocks and not 4: form: imagenet has these"));
  EXPECT_EQ(NamesRefusal(ExpandedOf(Imagenet(18)), "torchvison"),
            "there is no table of names \"torchvison\"; did you mean \"torchvision\"?");
  EXPECT_EQ(NamesRefusal(ExpandedOf(Imagenet(18)), "onnx"),
            "there is no table of names \"onnx\"; known here: stagecoach, huggingface, "
            "torchvision, timm");
}

}  // namespace
}  // namespace stagecoach
