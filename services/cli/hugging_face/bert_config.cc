#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "network/limits.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/bert.h"
#include "operations/kind_spec.h"
#include "services/cli/hugging_face/model_families.h"

namespace stagecoach {
namespace {

absl::Status CheckBertForm(const JsonField& config) {
  RETURN_IF_ERROR(MustBe(config.Of("position_embedding_type"), "absolute"));
  RETURN_IF_ERROR(MustBe(config.Of("is_decoder"), false));
  RETURN_IF_ERROR(MustBe(config.Of("add_cross_attention"), false));
  return MustBe(config.Of("tie_word_embeddings"), true);
}

absl::StatusOr<bool> IsTanhGelu(const JsonField& config) {
  const JsonField field = config.Of("hidden_act");
  ASSIGN_OR_RETURN(const std::string name, field.Text("gelu"));
  if (name == "gelu") return false;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return true;
  return field.Refused("must be gelu, gelu_new or gelu_pytorch_tanh");
}

absl::StatusOr<double> RateOf(const JsonField& field) {
  constexpr double kDefault = 0.1;
  return field.Number(kDefault);
}

absl::StatusOr<ModelConfig> ReadBert(const JsonField& config) {
  BertSpec spec;
  ASSIGN_OR_RETURN(spec.layers, config.Of("num_hidden_layers").Whole(1, kMaxLayers, 12));
  ASSIGN_OR_RETURN(spec.width, config.Of("hidden_size").Whole(1, kMaxWidth, 768));
  ASSIGN_OR_RETURN(spec.heads, config.Of("num_attention_heads").Whole(1, kMaxWidth, 12));
  ASSIGN_OR_RETURN(spec.hidden, config.Of("intermediate_size").Whole(1, kMaxHidden, 3072));
  if (spec.hidden == 4 * spec.width) spec.hidden = 0;
  ASSIGN_OR_RETURN(spec.context, config.Of("max_position_embeddings").Whole(1, kMaxContext, 512));
  ASSIGN_OR_RETURN(spec.vocabulary, config.Of("vocab_size").Whole(2, kMaxVocabulary, 30522));
  ASSIGN_OR_RETURN(spec.segments, config.Of("type_vocab_size").Whole(1, kMaxVocabulary, 2));
  RETURN_IF_ERROR(CheckBertForm(config));
  ASSIGN_OR_RETURN(spec.dropout, RateOf(config.Of("hidden_dropout_prob")));
  ASSIGN_OR_RETURN(spec.attention_dropout, RateOf(config.Of("attention_probs_dropout_prob")));
  ASSIGN_OR_RETURN(spec.epsilon, config.Of("layer_norm_eps").Number(1e-12));
  ASSIGN_OR_RETURN(spec.tanh_gelu, IsTanhGelu(config));
  CrossEntropySpec loss;
  ASSIGN_OR_RETURN(loss.ignore_index, config.Of("pad_token_id").Whole(0, spec.vocabulary - 1, 0));
  NetworkSpec network(spec);
  network.objective.kind = CrossEntropySpec::kKind;
  network.objective.attributes = ToAttributes(loss);
  ASSIGN_OR_RETURN(const std::vector<JsonField> architectures, config.Of("architectures").Items());
  std::vector<std::string> except;
  if (architectures.size() == 1) {
    ASSIGN_OR_RETURN(const std::string name, architectures[0].Text());
    if (name == "BertModel") except = {"cls.*"};
  }
  // Each position has a row of weights, so a shorter context is another network.
  return ModelConfig{.architecture = "",
                     .network = network,
                     .any_context = false,
                     .masked = true,
                     .except = except};
}

// The padding's id; 0 as the library has it by itself.
absl::StatusOr<int64_t> PaddingOf(const KindSpec& objective) {
  if (objective.kind != CrossEntropySpec::kKind) return 0;
  ASSIGN_OR_RETURN(const auto loss, FromAttributes<CrossEntropySpec>(
                                        objective.attributes, "model.objective.cross_entropy."));
  return loss.ignore_index == CrossEntropySpec::kNothingIgnored ? 0 : loss.ignore_index;
}

}  // namespace

const ModelFamily& BertFamily() {
  static const ModelFamily family{
      "bert", "BertForMaskedLM", {"BertModel", "BertForPreTraining"}, ReadBert};
  return family;
}

absl::StatusOr<nlohmann::ordered_json> WriteBertConfig(const NetworkSpec& network) {
  ASSIGN_OR_RETURN(const BertSpec spec,
                   FromAttributes<BertSpec>(network.attributes, "model.bert."));
  ASSIGN_OR_RETURN(const int64_t padding, PaddingOf(network.objective));
  return nlohmann::ordered_json{
      {"architectures", nlohmann::ordered_json::array({BertFamily().architecture})},
      {"model_type", BertFamily().model_type},
      {"num_hidden_layers", spec.layers},
      {"hidden_size", spec.width},
      {"num_attention_heads", spec.heads},
      {"intermediate_size", spec.hidden > 0 ? spec.hidden : 4 * spec.width},
      {"max_position_embeddings", spec.context},
      {"vocab_size", spec.vocabulary},
      {"type_vocab_size", spec.segments},
      {"hidden_act", spec.tanh_gelu ? "gelu_new" : "gelu"},
      {"layer_norm_eps", spec.epsilon},
      {"hidden_dropout_prob", spec.dropout},
      {"attention_probs_dropout_prob", spec.attention_dropout},
      {"position_embedding_type", "absolute"},
      {"pad_token_id", padding},
      {"tie_word_embeddings", true},
      {"dtype", "float32"},
      {"torch_dtype", "float32"}};
}

}  // namespace stagecoach
