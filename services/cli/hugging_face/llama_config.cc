// Llama and the models of its form: Mistral, Qwen2, Qwen3.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/limits.h"
#include "network/zoo/llama.h"
#include "operations/attributes.h"
#include "services/cli/hugging_face/model_families.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostPositions = int64_t{1} << 40;

// What the classes of transformers take where the file says nothing.
struct LlamaDefaults {
  int64_t positions = 2048, key_heads = 0, head_width = 0;  // 0: as heads; of the width
  double epsilon = 1e-6;
};

// Fields of network `llama`, from names that all models of the form have.
absl::StatusOr<LlamaSpec> ReadSizes(const JsonField& config, const LlamaDefaults& defaults) {
  LlamaSpec spec;
  ASSIGN_OR_RETURN(spec.layers, config.Of("num_hidden_layers").Whole(1, kMaxLayers));
  ASSIGN_OR_RETURN(spec.width, config.Of("hidden_size").Whole(1, kMaxWidth));
  ASSIGN_OR_RETURN(spec.heads, config.Of("num_attention_heads").Whole(1, kMaxWidth));
  ASSIGN_OR_RETURN(spec.hidden, config.Of("intermediate_size").Whole(1, kMaxHidden));
  ASSIGN_OR_RETURN(spec.vocabulary, config.Of("vocab_size").Whole(2, kMaxVocabulary));
  const JsonField key_heads = config.Of("num_key_value_heads");
  // The class has a number for a file without the field; null means as many as heads.
  const bool by_class = key_heads.value() == nullptr && defaults.key_heads > 0;
  ASSIGN_OR_RETURN(spec.key_heads,
                   key_heads.Whole(1, kMaxWidth, by_class ? defaults.key_heads : spec.heads));
  ASSIGN_OR_RETURN(spec.head_width, config.Of("head_dim").Whole(1, kMaxWidth, defaults.head_width));
  if (spec.key_heads == spec.heads) spec.key_heads = 0;
  if (spec.head_width * spec.heads == spec.width) spec.head_width = 0;
  ASSIGN_OR_RETURN(spec.epsilon, config.Of("rms_norm_eps").Number(defaults.epsilon));
  ASSIGN_OR_RETURN(spec.tied_embeddings, FlagOf(config.Of("tie_word_embeddings"), false));
  return spec;
}

absl::StatusOr<double> ThetaOf(const JsonField& config, const JsonField& scaling) {
  const JsonField inside = scaling.Of("rope_theta");
  return (inside.missing() ? config.Of("rope_theta") : inside).Number(10000.0);
}

// Version 5 of transformers has one object rope_parameters; older files have rope_theta, and
// rope_scaling if the positions are scaled.
absl::StatusOr<JsonField> RotaryObject(const JsonField& config) {
  const JsonField parameters = config.Of("rope_parameters");
  const JsonField found = parameters.missing() ? config.Of("rope_scaling") : parameters;
  if (found.missing()) return found;
  const bool known = !found.Of("rope_type").missing() || !found.Of("type").missing() ||
                     !found.Of("rope_theta").missing();
  if (known) return found;
  return found.Refused("must be an object with rope_type: no network here has other forms");
}

absl::Status ReadRotary(const JsonField& config, LlamaSpec* spec) {
  ASSIGN_OR_RETURN(const JsonField scaling, RotaryObject(config));
  ASSIGN_OR_RETURN(spec->rotary_theta, ThetaOf(config, scaling));
  for (const JsonField& partial :
       {scaling.Of("partial_rotary_factor"), config.Of("partial_rotary_factor")}) {
    ASSIGN_OR_RETURN(const double part, partial.Number(1.0));
    if (part != 1) return partial.Refused("must be 1: no network here turns a part of a head");
  }
  // The library takes the older name first.
  const JsonField type = scaling.Of(scaling.Of("type").missing() ? "rope_type" : "type");
  ASSIGN_OR_RETURN(const std::string name, type.Text("default"));
  if (name == "default") return absl::OkStatus();
  if (name != "linear" && name != "llama3") {
    return type.Refused("must be default, linear or llama3: no network here has another");
  }
  RotaryScalingFields& fields = spec->scaling;
  fields.form = name == "linear" ? RotaryScalingForm::kLinear : RotaryScalingForm::kLlama3;
  ASSIGN_OR_RETURN(fields.factor, scaling.Of("factor").Number());
  if (fields.form == RotaryScalingForm::kLinear) return absl::OkStatus();
  ASSIGN_OR_RETURN(fields.low_frequency_factor, scaling.Of("low_freq_factor").Number());
  ASSIGN_OR_RETURN(fields.high_frequency_factor, scaling.Of("high_freq_factor").Number());
  ASSIGN_OR_RETURN(fields.original_context,
                   scaling.Of("original_max_position_embeddings").Whole(1, kMostPositions));
  return absl::OkStatus();
}

// As files before version 5 of transformers have it, which version 5 reads too.
nlohmann::ordered_json ScalingJson(const RotaryScalingFields& fields) {
  if (fields.form == RotaryScalingForm::kNone) return nullptr;
  if (fields.form == RotaryScalingForm::kLinear) {
    return {{"rope_type", "linear"}, {"factor", fields.factor}};
  }
  return {{"rope_type", "llama3"},
          {"factor", fields.factor},
          {"low_freq_factor", fields.low_frequency_factor},
          {"high_freq_factor", fields.high_frequency_factor},
          {"original_max_position_embeddings", fields.original_context}};
}

// The longest context in which the model attends to all positions before.
absl::StatusOr<ModelConfig> WithContext(const JsonField& config, const LlamaDefaults& defaults,
                                        std::optional<int64_t> window, LlamaSpec spec) {
  ASSIGN_OR_RETURN(
      const int64_t positions,
      config.Of("max_position_embeddings").Whole(1, kMostPositions, defaults.positions));
  spec.context = std::min({positions, window.value_or(positions), kMaxContext});
  return ModelConfig{.architecture = "", .network = NetworkSpec(spec), .any_context = true};
}

absl::StatusOr<ModelConfig> ReadLlama(const JsonField& config) {
  const LlamaDefaults defaults{};
  RETURN_IF_ERROR(MustBe(config.Of("hidden_act"), "silu"));
  RETURN_IF_ERROR(MustBe(config.Of("attention_bias"), false));
  RETURN_IF_ERROR(MustBe(config.Of("mlp_bias"), false));
  ASSIGN_OR_RETURN(LlamaSpec spec, ReadSizes(config, defaults));
  RETURN_IF_ERROR(ReadRotary(config, &spec));
  return WithContext(config, defaults, std::nullopt, spec);
}

// Rows attend to the last sliding_window positions only, so a context within it is Llama's.
absl::StatusOr<ModelConfig> ReadMistral(const JsonField& config) {
  const LlamaDefaults defaults{.positions = 4096 * 32, .key_heads = 8};
  RETURN_IF_ERROR(MustBe(config.Of("hidden_act"), "silu"));
  ASSIGN_OR_RETURN(LlamaSpec spec, ReadSizes(config, defaults));
  RETURN_IF_ERROR(ReadRotary(config, &spec));
  const JsonField field = config.Of("sliding_window");
  constexpr int64_t kWindowByClass = 4096;
  std::optional<int64_t> window;  // null: none
  if (field.value() == nullptr || !field.missing()) {
    ASSIGN_OR_RETURN(window, field.Whole(1, kMostPositions, kWindowByClass));
  }
  return WithContext(config, defaults, window, spec);
}

absl::StatusOr<ModelConfig> ReadQwen2(const JsonField& config) {
  const LlamaDefaults defaults{.positions = 32768, .key_heads = 32};
  RETURN_IF_ERROR(MustBe(config.Of("hidden_act"), "silu"));
  RETURN_IF_ERROR(MustBe(config.Of("use_sliding_window"), false));
  ASSIGN_OR_RETURN(LlamaSpec spec, ReadSizes(config, defaults));
  RETURN_IF_ERROR(ReadRotary(config, &spec));
  spec.qkv_bias = true;
  return WithContext(config, defaults, std::nullopt, spec);
}

absl::StatusOr<ModelConfig> ReadQwen3(const JsonField& config) {
  const LlamaDefaults defaults{.positions = 32768, .key_heads = 32, .head_width = 128};
  RETURN_IF_ERROR(MustBe(config.Of("hidden_act"), "silu"));
  RETURN_IF_ERROR(MustBe(config.Of("attention_bias"), false));
  RETURN_IF_ERROR(MustBe(config.Of("use_sliding_window"), false));
  ASSIGN_OR_RETURN(LlamaSpec spec, ReadSizes(config, defaults));
  RETURN_IF_ERROR(ReadRotary(config, &spec));
  spec.qk_norm = true;
  // The norms of queries and keys have the epsilon of the others there.
  constexpr double kHeadEpsilon = 1e-6;
  if (spec.epsilon != kHeadEpsilon) {
    return config.Of("rms_norm_eps")
        .Refused(absl::StrCat("must be ", kHeadEpsilon, ", which norms of heads have here"));
  }
  return WithContext(config, defaults, std::nullopt, spec);
}

}  // namespace

const ModelFamily& LlamaFamily() {
  static const ModelFamily family{"llama", "LlamaForCausalLM", {"LlamaModel"}, ReadLlama};
  return family;
}
const ModelFamily& MistralFamily() {
  static const ModelFamily family{"mistral", "MistralForCausalLM", {"MistralModel"}, ReadMistral};
  return family;
}
const ModelFamily& Qwen2Family() {
  static const ModelFamily family{"qwen2", "Qwen2ForCausalLM", {"Qwen2Model"}, ReadQwen2};
  return family;
}
const ModelFamily& Qwen3Family() {
  static const ModelFamily family{"qwen3", "Qwen3ForCausalLM", {"Qwen3Model"}, ReadQwen3};
  return family;
}

absl::StatusOr<nlohmann::ordered_json> WriteLlamaConfig(const NetworkSpec& network) {
  ASSIGN_OR_RETURN(const LlamaSpec spec,
                   FromAttributes<LlamaSpec>(network.attributes, "model.llama."));
  if (spec.qk_norm && spec.qkv_bias) {
    return FieldError("model.llama.qkv_bias", "true",
                      "no architecture has it beside qk_norm: leave one of them out");
  }
  const ModelFamily& family = spec.qk_norm    ? Qwen3Family()
                              : spec.qkv_bias ? Qwen2Family()
                                              : LlamaFamily();
  nlohmann::ordered_json config{
      {"architectures", nlohmann::ordered_json::array({family.architecture})},
      {"model_type", family.model_type},
      {"num_hidden_layers", spec.layers},
      {"hidden_size", spec.width},
      {"intermediate_size", spec.hidden},
      {"num_attention_heads", spec.heads},
      {"num_key_value_heads", spec.key_heads > 0 ? spec.key_heads : spec.heads},
      {"head_dim", spec.head_width > 0 ? spec.head_width : spec.width / spec.heads},
      {"max_position_embeddings", spec.context},
      {"vocab_size", spec.vocabulary},
      {"hidden_act", "silu"},
      {"rms_norm_eps", spec.epsilon},
      {"rope_theta", spec.rotary_theta},
      {"rope_scaling", ScalingJson(spec.scaling)},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"tie_word_embeddings", spec.tied_embeddings},
      {"dtype", "float32"},
      {"torch_dtype", "float32"}};
  if (spec.qk_norm || spec.qkv_bias) config["use_sliding_window"] = false;
  return config;
}

}  // namespace stagecoach
