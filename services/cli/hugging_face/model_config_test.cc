#include "services/cli/hugging_face/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "network/network_kinds.h"
#include "network/zoo/mlp.h"
#include "operations/attributes.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

json LlamaJson() {
  return {{"architectures", json::array({"LlamaForCausalLM"})},
          {"model_type", "llama"},
          {"hidden_size", 64},
          {"intermediate_size", 176},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 4096},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},
          {"hidden_act", "silu"},
          {"vocab_size", 1000}};
}

json Gpt2Json() { return {{"model_type", "gpt2"}, {"vocab_size", 500}, {"n_positions", 128}}; }

json BertJson() { return {{"model_type", "bert"}, {"vocab_size", 500}, {"pad_token_id", 3}}; }

json WithField(json config, const char* name, const json& value) {
  config[name] = value;
  return config;
}

std::string ConfigNetwork(const json& config) {
  const absl::StatusOr<ModelConfig> read = ReadModelConfig(JsonField(&config));
  if (!read.ok()) return std::string(read.status().message());
  EXPECT_TRUE(ExpandNetwork(read->network).ok()) << config;
  return absl::StrCat(read->architecture, " ", read->network.kind, " ",
                      FormatAttributes(read->network.attributes));
}

TEST(ModelConfig, OfLlamaIsOurs) {
  EXPECT_EQ(ConfigNetwork(LlamaJson()),
            "LlamaForCausalLM llama layers=2 width=64 heads=8 key_heads=2 hidden=176 context=4096 "
            "vocabulary=1000 rotary_theta=500000 epsilon=1e-05 rotary_scaling=none");
  json config = LlamaJson();
  config.erase("num_key_value_heads");
  config.erase("rope_theta");
  config.erase("rms_norm_eps");
  config["tie_word_embeddings"] = true;
  config["head_dim"] = 8;
  EXPECT_EQ(
      ConfigNetwork(config),
      "LlamaForCausalLM llama layers=2 width=64 heads=8 hidden=176 context=4096 "
      "vocabulary=1000 rotary_theta=10000 epsilon=1e-06 tied_embeddings=true rotary_scaling=none");
  config["head_dim"] = 16;
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("head_width=16"));
}

TEST(ModelConfig, OfGpt2IsOursWithTheDefaultsOfItsClass) {
  EXPECT_THAT(ConfigNetwork(Gpt2Json()),
              StartsWith("GPT2LMHeadModel gpt layers=12 width=768 heads=12 context=128 "
                         "vocabulary=500 dropout=0.1 tied_embeddings=true"));
  json config = WithField(Gpt2Json(), "activation_function", "gelu");
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("exact_gelu=true"));
  config["architectures"] = json::array({"GPT2Model"});
  config["n_inner"] = 4 * 768;
  EXPECT_THAT(ConfigNetwork(config), Not(HasSubstr("hidden")));
  config["n_inner"] = 100;
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("hidden=100"));
}

TEST(ModelConfig, OfBertIsOursWithTheDefaultsOfItsClass) {
  EXPECT_EQ(ConfigNetwork(BertJson()),
            "BertForMaskedLM bert layers=12 width=768 heads=12 context=512 vocabulary=500 "
            "segments=2 dropout=0.1 attention_dropout=0.1 epsilon=1e-12");
  json config = WithField(BertJson(), "architectures", json::array({"BertForPreTraining"}));
  config["hidden_act"] = "gelu_new";
  config["intermediate_size"] = 100;
  EXPECT_THAT(ConfigNetwork(config), AllOf(HasSubstr("tanh_gelu=true"), HasSubstr("hidden=100")));
  const json padded = BertJson();
  const absl::StatusOr<ModelConfig> read = ReadModelConfig(JsonField(&padded));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ExpandNetwork(read->network)->objective.ignored, 3) << "as targets without a mask";
  EXPECT_THAT(read->except, testing::IsEmpty());
  const json headless = WithField(BertJson(), "architectures", json::array({"BertModel"}));
  EXPECT_THAT(ReadModelConfig(JsonField(&headless))->except, testing::ElementsAre("cls.*"));
  EXPECT_EQ(ConfigNetwork(WithField(BertJson(), "position_embedding_type", "relative_key")),
            "position_embedding_type: \"relative_key\"; must be \"absolute\": no network here has "
            "another");
  EXPECT_EQ(ConfigNetwork(WithField(BertJson(), "hidden_act", "relu")),
            "hidden_act: \"relu\"; must be gelu, gelu_new or gelu_pytorch_tanh");
  EXPECT_EQ(ConfigNetwork(WithField(BertJson(), "pad_token_id", 500)),
            "pad_token_id: 500; must be a whole number from 0 to 499");
  EXPECT_EQ(ConfigNetwork(WithField(BertJson(), "architectures",
                                    json::array({"BertForSequenceClassification"}))),
            "architectures[0]: \"BertForSequenceClassification\"; must be BertForMaskedLM or "
            "BertModel or BertForPreTraining: save the model as BertForMaskedLM");
}

TEST(ModelConfig, OfModelsOfLlamasFormSayWhatTheyHaveOfTheirOwn) {
  json config = WithField(LlamaJson(), "architectures", json::array({"Qwen2ForCausalLM"}));
  config["model_type"] = "qwen2";
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("qkv_bias=true"));
  config["architectures"] = json::array({"Qwen3ForCausalLM"});
  config["model_type"] = "qwen3";
  config["rms_norm_eps"] = 1e-6;
  EXPECT_THAT(ConfigNetwork(config), AllOf(HasSubstr("head_width=128"), HasSubstr("qk_norm=true")));
  config["rms_norm_eps"] = 1e-5;
  EXPECT_EQ(ConfigNetwork(config),
            "rms_norm_eps: 1e-05; must be 1e-06, which norms of heads have here");
  // Within the window a row attends to all before it.
  config = WithField(LlamaJson(), "architectures", json::array({"MistralForCausalLM"}));
  config["model_type"] = "mistral";
  config["sliding_window"] = 512;
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("context=512 "));
  config["sliding_window"] = nullptr;
  config["max_position_embeddings"] = 32768;
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("context=32768 "));
  config.erase("sliding_window");
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("context=4096 ")) << "the class's window";
  config.erase("num_key_value_heads");
  EXPECT_THAT(ConfigNetwork(config), Not(HasSubstr("key_heads"))) << "8, as many as heads";
  config["num_attention_heads"] = 16;
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("key_heads=8"));
  config["num_key_value_heads"] = nullptr;
  EXPECT_THAT(ConfigNetwork(config), Not(HasSubstr("key_heads")));
}

TEST(ModelConfig, OfVersion5HasTheRotaryPositionsInAnObject) {
  json config = LlamaJson();
  config.erase("rope_theta");
  config["rope_parameters"] = {{"rope_theta", 20000.0}, {"rope_type", "default"}};
  EXPECT_THAT(ConfigNetwork(config), HasSubstr("rotary_theta=20000 "));
}

const json kLlama3ScalingJson = {{"rope_type", "llama3"},
                                 {"factor", 8.0},
                                 {"low_freq_factor", 1.0},
                                 {"high_freq_factor", 4.0},
                                 {"original_max_position_embeddings", 512}};

TEST(ModelConfig, ScalesRotaryPositions) {
  EXPECT_THAT(ConfigNetwork(WithField(LlamaJson(), "rope_scaling", kLlama3ScalingJson)),
              HasSubstr("rotary_scaling=llama3 rotary_factor=8 rotary_low_frequency_factor=1 "
                        "rotary_high_frequency_factor=4 rotary_original_context=512"));
  EXPECT_THAT(
      ConfigNetwork(WithField(LlamaJson(), "rope_scaling", {{"type", "linear"}, {"factor", 2}})),
      HasSubstr("rotary_scaling=linear rotary_factor=2"));
  EXPECT_THAT(
      ConfigNetwork(WithField(LlamaJson(), "rope_scaling",
                              {{"rope_type", "linear"}, {"type", "default"}, {"factor", 2}})),
      HasSubstr("rotary_scaling=none"))
      << "the library takes the older name first";
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "rope_scaling", {{"type", "linear"}})),
            "rope_scaling.factor: missing; must be a number");
}

TEST(ModelConfig, ThatNoNetworkHereHasIsRefused) {
  const std::string known =
      "BertForMaskedLM, GPT2LMHeadModel, LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, "
      "Qwen3ForCausalLM";
  EXPECT_EQ(
      ConfigNetwork(WithField(LlamaJson(), "model_type", "mamba")),
      absl::StrCat("model_type: \"mamba\"; is no architecture that is known here; these are: ",
                   known));
  EXPECT_EQ(ConfigNetwork(json::object()),
            absl::StrCat("model_type: missing; must name the architecture, as \"llama\"; those "
                         "known here: ",
                         known));
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "architectures",
                                    json::array({"LlamaForSequenceClassification"}))),
            "architectures[0]: \"LlamaForSequenceClassification\"; must be LlamaForCausalLM or "
            "LlamaModel: save the model as LlamaForCausalLM");
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "hidden_act", "gelu")),
            "hidden_act: \"gelu\"; must be \"silu\": no network here has another");
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "attention_bias", true)),
            "attention_bias: true; must be false: no network here has the other form");
  EXPECT_THAT(ConfigNetwork(WithField(LlamaJson(), "rope_scaling", {{"rope_type", "yarn"}})),
              StartsWith("rope_scaling.rope_type: \"yarn\"; must be default, linear or llama3"));
  // These were taken for the usual positions.
  const char* const forms = "must be an object with rope_type: no network here has other forms";
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "rope_scaling", "yarn")),
            absl::StrCat("rope_scaling: \"yarn\"; ", forms));
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "rope_parameters",
                                    {{"full_attention", {{"rope_type", "yarn"}}}})),
            absl::StrCat("rope_parameters: an object; ", forms));
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "partial_rotary_factor", 0.5)),
            "partial_rotary_factor: 0.5; must be 1: no network here turns a part of a head");
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "hidden_size", "64")),
            "hidden_size: \"64\"; must be a whole number from 1 to 65536");
  EXPECT_EQ(ConfigNetwork(WithField(LlamaJson(), "num_hidden_layers", nullptr)),
            "num_hidden_layers: null; must be a whole number from 1 to 10000");
  EXPECT_THAT(ConfigNetwork(WithField(LlamaJson(), "quantization_config", {{"bits", 4}})),
              StartsWith("quantization_config: an object; quantized weights are not read"));
  EXPECT_THAT(ConfigNetwork(WithField(Gpt2Json(), "scale_attn_weights", nullptr)),
              StartsWith("scale_attn_weights: null; must be true"));
  EXPECT_THAT(ConfigNetwork(WithField(Gpt2Json(), "num_attention_heads", 2)),
              StartsWith("num_attention_heads: 2; must be absent: give n_embd"));
  EXPECT_THAT(ConfigNetwork(WithField(Gpt2Json(), "tie_word_embeddings", nullptr)),
              Not(HasSubstr("tied_embeddings")));
  EXPECT_THAT(ConfigNetwork(WithField(Gpt2Json(), "attn_pdrop", 0.2)),
              StartsWith("attn_pdrop: 0.2; must be resid_pdrop, 0.1"));
  EXPECT_THAT(ConfigNetwork(WithField(Gpt2Json(), "scale_attn_by_inverse_layer_idx", true)),
              StartsWith("scale_attn_by_inverse_layer_idx: true; must be false"));
}

TEST(ModelConfig, WrittenIsReadAsTheSameNetwork) {
  json qwen = WithField(LlamaJson(), "model_type", "qwen2");
  qwen["architectures"] = json::array({"Qwen2ForCausalLM"});
  json wide = WithField(LlamaJson(), "head_dim", 32);
  wide["tie_word_embeddings"] = true;
  for (const json& config :
       {BertJson(), WithField(BertJson(), "hidden_act", "gelu_new"),
        WithField(BertJson(), "type_vocab_size", 1), LlamaJson(), wide, Gpt2Json(),
        WithField(Gpt2Json(), "layer_norm_epsilon", 1e-6), WithField(Gpt2Json(), "n_inner", 96),
        qwen, WithField(LlamaJson(), "rope_scaling", kLlama3ScalingJson)}) {
    const absl::StatusOr<ModelConfig> read = ReadModelConfig(JsonField(&config));
    ASSERT_TRUE(read.ok()) << read.status();
    const absl::StatusOr<nlohmann::ordered_json> written = WriteModelConfig(read->network);
    ASSERT_TRUE(written.ok()) << written.status();
    const json again = json::parse(written->dump());
    const absl::StatusOr<ModelConfig> back = ReadModelConfig(JsonField(&again));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->network, read->network) << *written;
    EXPECT_EQ(back->architecture, read->architecture);
  }
}

TEST(ModelConfig, OfANetworkThatHuggingFaceDoesNotHaveIsNotWritten) {
  EXPECT_EQ(
      WriteModelConfig(NetworkSpec(MlpNetworkSpec{})).status().message(),
      "model: mlp; has no form at Hugging Face that is known here; bert, gpt and llama have one");
}

}  // namespace
}  // namespace stagecoach
