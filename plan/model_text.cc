#include "absl/strings/str_cat.h"
#include "network/layer_kinds.h"
#include "plan/model_spec.h"

namespace stagecoach {
std::string CanonicalModelText(const ExpandedModel& model) {
  std::string text =
      absl::StrCat("model 1\ncontext ", model.context, "\nvocabulary ", model.vocabulary, "\n");
  for (const ExpandedLayer& layer : model.layers) {
    const std::string function = LayerFunction(layer.spec);
    absl::StrAppend(&text, "layer ", layer.index, " ", function.empty() ? "identity" : function,
                    " ", layer.width_in, " ", layer.width_out, "\n");
    for (const ParameterSpec& parameter : layer.parameters) {
      absl::StrAppend(&text, "  ", parameter.name, " ", parameter.shape.ToString(), "\n");
    }
  }
  return text;
}

}  // namespace stagecoach
