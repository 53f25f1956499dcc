#include "plan/model_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_builder.h"
#include "network/layer_kinds.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/layer_norm.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/residual.h"
#include "network/limits.h"
#include "network/network_builder.h"

namespace stagecoach {
namespace {

constexpr int64_t kMaxGptBlocks = (kMaxLayers - 3) / 2;

absl::Status CheckDimensions(const std::string& path, int64_t width, int64_t context,
                             int64_t vocabulary) {
  RETURN_IF_ERROR(CheckInteger(path + ".width", width, 1, kMaxWidth));
  RETURN_IF_ERROR(CheckInteger(path + ".context", context, 1, kMaxContext));
  return CheckInteger(path + ".vocabulary", vocabulary, 2, kMaxVocabulary);
}

absl::StatusOr<Network> ExpandList(const LayerListSpec& spec, const std::string& path) {
  RETURN_IF_ERROR(CheckDimensions(path, spec.width, spec.context, spec.vocabulary));
  const std::string list = path + ".layers";
  RETURN_IF_ERROR(
      CheckInteger(list + " (count)", static_cast<int64_t>(spec.layers.size()), 1, kMaxLayers));
  NetworkBuilder builder(BranchStddev(spec.layers),
                         {.vocabulary = spec.vocabulary, .width = spec.width});
  const ValueType ids{Element::kIds, Leading::kSamples, {spec.context}};
  const WireId tokens = builder.Input("tokens", ids, spec.vocabulary);
  const WireId targets = builder.Input("targets", ids, spec.vocabulary);
  WireId x = tokens;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    ASSIGN_OR_RETURN(x, builder.Add(spec.layers[i], absl::StrCat(list, "[", i, "]"), x));
  }
  const int64_t width = builder.type(x).shape.back();
  if (width != spec.vocabulary) {
    return FieldError(absl::StrCat(list, "[", spec.layers.size() - 1, "]"),
                      absl::StrCat("gives width ", width),
                      absl::StrCat("the last layer must give logits of the vocabulary: end with "
                                   "linear: {out: ",
                                   spec.vocabulary, "}"));
  }
  return builder.Finish({.logits = x, .targets = targets}, path);
}

absl::StatusOr<Network> ExpandGpt(const GptSpec& spec) {
  const std::string path = "model.gpt";
  RETURN_IF_ERROR(CheckInteger(path + ".layers", spec.layers, 1, kMaxGptBlocks));
  RETURN_IF_ERROR(CheckDimensions(path, spec.width, spec.context, spec.vocabulary));
  RETURN_IF_ERROR(CheckInteger(path + ".heads", spec.heads, 1, kMaxWidth));
  if (spec.width % spec.heads != 0) {
    return FieldError(path + ".heads", absl::StrCat(spec.heads),
                      absl::StrCat("must divide the width ", spec.width));
  }
  RETURN_IF_ERROR(CheckRate(path + ".dropout", spec.dropout));
  LayerListSpec list{
      .width = spec.width, .context = spec.context, .vocabulary = spec.vocabulary, .layers = {}};
  const auto branch = [&spec](LayerSpec inner) {
    ResidualSpec residual;
    residual.layers.push_back({LayerNormSpec{}});
    residual.layers.push_back(std::move(inner));
    if (spec.dropout > 0) residual.layers.push_back({DropoutSpec{.rate = spec.dropout}});
    return LayerSpec{std::move(residual)};
  };
  list.layers.push_back({EmbeddingSpec{.dropout = spec.dropout}});
  for (int64_t i = 0; i < spec.layers; ++i) {
    list.layers.push_back(branch({AttentionSpec{.heads = spec.heads, .dropout = spec.dropout}}));
    list.layers.push_back(branch({MlpSpec{.hidden = 4 * spec.width}}));
  }
  list.layers.push_back({LayerNormSpec{}});
  list.layers.push_back({LinearSpec{.out = spec.vocabulary, .bias = false}});
  return ExpandList(list, path);
}

}  // namespace

absl::StatusOr<Network> ExpandModel(const ModelSpec& model, Precision precision) {
  struct Visitor {
    absl::StatusOr<Network> operator()(const GptSpec& gpt) const { return ExpandGpt(gpt); }
    absl::StatusOr<Network> operator()(const LayerListSpec& list) const {
      return ExpandList(list, "model.sequence");
    }
  };
  absl::StatusOr<Network> expanded = std::visit(Visitor{}, model);
  if (expanded.ok()) expanded->precision = precision;
  return expanded;
}

}  // namespace stagecoach
