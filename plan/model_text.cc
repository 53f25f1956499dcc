#include "absl/strings/str_cat.h"
#include "network/layer_kinds.h"
#include "plan/model_spec.h"

namespace stagecoach {
namespace {

// The function of a layer in one word; empty for dropout, which is not part of the function.
std::string FunctionText(const LayerSpec& layer) {
  return std::visit(
      Overloaded{[](const AttentionSpec& spec) { return absl::StrCat("attention:", spec.heads); },
                 [](const MlpSpec& spec) { return absl::StrCat("mlp:", spec.hidden); },
                 [](const LinearSpec& spec) { return absl::StrCat("linear:", spec.out); },
                 [](const DropoutSpec&) { return std::string(); },
                 [](const ResidualSpec& spec) {
                   std::string text = "residual(";
                   for (const LayerSpec& inner : spec.layers) {
                     const std::string word = FunctionText(inner);
                     if (word.empty()) continue;
                     absl::StrAppend(&text, text.back() == '(' ? "" : " ", word);
                   }
                   return text + ")";
                 },
                 [&layer](const auto&) { return std::string(LayerKindName(layer)); }},
      layer.kind);
}

}  // namespace

std::string CanonicalModelText(const ExpandedModel& model) {
  std::string text =
      absl::StrCat("model 1\ncontext ", model.context, "\nvocabulary ", model.vocabulary, "\n");
  for (const ExpandedLayer& layer : model.layers) {
    const std::string function = FunctionText(layer.spec);
    absl::StrAppend(&text, "layer ", layer.index, " ", function.empty() ? "identity" : function,
                    " ", layer.width_in, " ", layer.width_out, "\n");
    for (const ParameterSpec& parameter : layer.parameters) {
      absl::StrAppend(&text, "  ", parameter.name, " ", parameter.shape.ToString(), "\n");
    }
  }
  return text;
}

}  // namespace stagecoach
