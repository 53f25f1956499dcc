#include "network/layer_kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/named_list.h"

// A line a kind. Its file in network/layers defines `const LayerKind* <Name>Kind()`; its message is in
// proto/stagecoach/v1/layers.proto.
#define STAGECOACH_LAYER_KINDS(KIND) \
  KIND(Attention)                    \
  KIND(AveragePool)                  \
  KIND(BatchNorm)                    \
  KIND(Convolution)                  \
  KIND(Dropout)                      \
  KIND(Embedding)                    \
  KIND(Flatten)                      \
  KIND(Gelu)                         \
  KIND(GlobalPool)                   \
  KIND(GroupNorm)                    \
  KIND(LayerNorm)                    \
  KIND(Linear)                       \
  KIND(MaxPool)                      \
  KIND(Mlp)                          \
  KIND(Relu)                         \
  KIND(Residual)                     \
  KIND(RmsNorm)                      \
  KIND(Silu)                         \
  KIND(Swiglu)

namespace stagecoach {

#define STAGECOACH_DECLARE(Name) const LayerKind* Name##Kind();
STAGECOACH_LAYER_KINDS(STAGECOACH_DECLARE)
#undef STAGECOACH_DECLARE

namespace {

const NamedList<LayerKind>& List() {
#define STAGECOACH_ENTRY(Name) Name##Kind(),
  static const auto* const list =
      new NamedList<LayerKind>("kind of layer", {STAGECOACH_LAYER_KINDS(STAGECOACH_ENTRY)});
#undef STAGECOACH_ENTRY
  return *list;
}

}  // namespace

const std::vector<const LayerKind*>& AllLayerKinds() { return List().all(); }

absl::StatusOr<const LayerKind*> FindLayerKind(std::string_view name) { return List().Find(name); }

std::string ExactText(double value) {
  std::array<char, 32> text;
  return std::string(text.data(), std::to_chars(text.begin(), text.end(), value).ptr);
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
