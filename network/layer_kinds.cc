#include "network/layer_kinds.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

const char* LayerKindName(const LayerSpec& layer) {
  return std::visit(
      Overloaded{[](const EmbeddingSpec&) { return "embedding"; },
                 [](const LayerNormSpec&) { return "layer_norm"; },
                 [](const AttentionSpec&) { return "attention"; },
                 [](const MlpSpec&) { return "mlp"; }, [](const LinearSpec&) { return "linear"; },
                 [](const GeluSpec&) { return "gelu"; },
                 [](const DropoutSpec&) { return "dropout"; },
                 [](const ResidualSpec&) { return "residual"; }},
      layer.kind);
}

std::string LayerLabel(const LayerSpec& layer) {
  std::string label = LayerKindName(layer);
  if (const auto* residual = std::get_if<ResidualSpec>(&layer.kind)) {
    const char* separator = "(";
    for (const LayerSpec& inner : residual->layers) {
      absl::StrAppend(&label, separator, LayerLabel(inner));
      separator = ", ";
    }
    absl::StrAppend(&label, ")");
  }
  return label;
}

int64_t LayerWidthOut(const LayerSpec& layer, int64_t width_in) {
  const auto* linear = std::get_if<LinearSpec>(&layer.kind);
  return linear != nullptr ? linear->out : width_in;
}

}  // namespace stagecoach
