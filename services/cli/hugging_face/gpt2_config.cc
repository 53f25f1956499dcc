#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/limits.h"
#include "network/zoo/gpt.h"
#include "operations/kind_spec.h"
#include "services/cli/hugging_face/model_families.h"

namespace stagecoach {
namespace {

// The library reads these as other names of n_embd and its like, and they go before.
absl::Status CheckForm(const JsonField& config) {
  for (const char* const alias :
       {"hidden_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers"}) {
    const JsonField field = config.Of(alias);
    if (!field.missing()) {
      return field.Refused("must be absent: give n_embd, n_positions, n_head and n_layer");
    }
  }
  RETURN_IF_ERROR(MustBe(config.Of("scale_attn_weights"), true));
  RETURN_IF_ERROR(MustBe(config.Of("scale_attn_by_inverse_layer_idx"), false));
  return MustBe(config.Of("add_cross_attention"), false);
}

// The rates apply at places of their own there; ours has one for all.
absl::StatusOr<double> DropoutOf(const JsonField& config) {
  constexpr double kDefault = 0.1;
  ASSIGN_OR_RETURN(const double rate, config.Of("resid_pdrop").Number(kDefault));
  for (const char* const name : {"embd_pdrop", "attn_pdrop"}) {
    ASSIGN_OR_RETURN(const double other, config.Of(name).Number(kDefault));
    if (other == rate) continue;
    return config.Of(name).Refused(
        absl::StrCat("must be resid_pdrop, ", rate, ": give all three the rate to train with"));
  }
  return rate;
}

absl::StatusOr<bool> IsExactGelu(const JsonField& config) {
  const JsonField field = config.Of("activation_function");
  ASSIGN_OR_RETURN(const std::string name, field.Text("gelu_new"));
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return false;
  if (name == "gelu") return true;
  return field.Refused("must be gelu_new, gelu_pytorch_tanh or gelu");
}

absl::StatusOr<ModelConfig> ReadGpt2(const JsonField& config) {
  GptSpec spec;
  ASSIGN_OR_RETURN(spec.layers, config.Of("n_layer").Whole(1, kMaxLayers, 12));
  ASSIGN_OR_RETURN(spec.width, config.Of("n_embd").Whole(1, kMaxWidth, 768));
  ASSIGN_OR_RETURN(spec.heads, config.Of("n_head").Whole(1, kMaxWidth, 12));
  ASSIGN_OR_RETURN(spec.context, config.Of("n_positions").Whole(1, kMaxContext, 1024));
  ASSIGN_OR_RETURN(spec.vocabulary, config.Of("vocab_size").Whole(2, kMaxVocabulary, 50257));
  ASSIGN_OR_RETURN(spec.tied_embeddings, FlagOf(config.Of("tie_word_embeddings"), true));
  ASSIGN_OR_RETURN(spec.hidden, config.Of("n_inner").Whole(1, kMaxHidden, 0));
  if (spec.hidden == 4 * spec.width) spec.hidden = 0;
  RETURN_IF_ERROR(CheckForm(config));
  ASSIGN_OR_RETURN(spec.dropout, DropoutOf(config));
  ASSIGN_OR_RETURN(spec.exact_gelu, IsExactGelu(config));
  ASSIGN_OR_RETURN(spec.epsilon, config.Of("layer_norm_epsilon").Number(1e-5));
  // Each position has a row of weights, so a shorter context is another network.
  return ModelConfig{.architecture = "", .network = NetworkSpec(spec), .any_context = false};
}

}  // namespace

const ModelFamily& Gpt2Family() {
  static const ModelFamily family{"gpt2", "GPT2LMHeadModel", {"GPT2Model"}, ReadGpt2};
  return family;
}

absl::StatusOr<nlohmann::ordered_json> WriteGpt2Config(const NetworkSpec& network) {
  ASSIGN_OR_RETURN(const GptSpec spec, FromAttributes<GptSpec>(network.attributes, "model.gpt."));
  return nlohmann::ordered_json{
      {"architectures", nlohmann::ordered_json::array({Gpt2Family().architecture})},
      {"model_type", Gpt2Family().model_type},
      {"n_layer", spec.layers},
      {"n_embd", spec.width},
      {"n_head", spec.heads},
      {"n_positions", spec.context},
      {"n_inner", spec.hidden > 0 ? spec.hidden : 4 * spec.width},
      {"vocab_size", spec.vocabulary},
      {"activation_function", spec.exact_gelu ? "gelu" : "gelu_new"},
      {"layer_norm_epsilon", spec.epsilon},
      {"resid_pdrop", spec.dropout},
      {"embd_pdrop", spec.dropout},
      {"attn_pdrop", spec.dropout},
      {"tie_word_embeddings", spec.tied_embeddings},
      {"dtype", "float32"},
      {"torch_dtype", "float32"}};
}

}  // namespace stagecoach
