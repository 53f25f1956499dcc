#include "network/layer_kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/listed.h"
#include "base/named_list.h"

namespace stagecoach {

// Each has a file in network/layers, which defines `const LayerKind* AttentionKind()`, and a
// message in proto/stagecoach/v1/layers.proto.
STAGECOACH_LISTED(Giver<const LayerKind*>, Kind,  //
                  Attention, AveragePool, BatchNorm, Convolution, CrossAttention, Dropout,
                  Embedding, Flatten, Gelu, GlobalPool, GroupNorm, LayerNorm, Linear, MaxPool, Mlp,
                  Relu, Residual, RmsNorm, Silu, Swiglu)

namespace {

const NamedList<LayerKind>& List() {
  static const auto* const list = new NamedList<LayerKind>("kind of layer", CallEach(kListedKind));
  return *list;
}

}  // namespace

const std::vector<const LayerKind*>& AllLayerKinds() { return List().all(); }

absl::StatusOr<const LayerKind*> FindLayerKind(std::string_view name) { return List().Find(name); }

std::string ExactText(double value) {
  std::array<char, 32> text;
  return std::string(text.data(), std::to_chars(text.begin(), text.end(), value).ptr);
}

bool HasLayer(const LayerSpec& layer, std::string_view kind) {
  return layer.kind == kind ||
         std::any_of(layer.layers.begin(), layer.layers.end(),
                     [kind](const LayerSpec& inner) { return HasLayer(inner, kind); });
}

std::string LayerFunction(const LayerSpec& layer) {
  const absl::StatusOr<const LayerKind*> kind = FindLayerKind(layer.kind);
  CHECK_OK(kind.status());
  return (*kind)->Function(layer);
}

double BranchStddev(const std::vector<LayerSpec>& layers) {
  const auto branches = std::count_if(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    const absl::StatusOr<const LayerKind*> kind = FindLayerKind(layer.kind);
    return kind.ok() && (*kind)->AddsToTrunk();
  });
  return kInitStddev / std::sqrt(static_cast<double>(std::max<int64_t>(branches, 1)));
}

std::string LayerLabel(const LayerSpec& layer) {
  std::string label = layer.kind;
  for (size_t i = 0; i < layer.layers.size(); ++i) {
    absl::StrAppend(&label, i == 0 ? "(" : ", ", LayerLabel(layer.layers[i]));
  }
  if (!layer.layers.empty()) label += ")";
  return label;
}

}  // namespace stagecoach
