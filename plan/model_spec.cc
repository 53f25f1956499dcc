#include "plan/model_spec.h"

#include <list>
#include <memory>
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

namespace stagecoach {
namespace {

constexpr int64_t kMaxGptBlocks = (kMaxLayers - 3) / 2;

// Lists of the layers so far: a network has few different layers, and many of each.
class KnownLists {
 public:
  std::shared_ptr<const LayerLists> Of(LayerGraph graph) {
    for (auto known = known_.begin(); known != known_.end(); ++known) {
      if (known->first != graph) continue;
      known_.splice(known_.begin(), known_, known);  // those used last are kept
      return known->second;
    }
    auto lists = std::make_shared<const LayerLists>(Differentiate(graph));
    if (known_.size() == kMost) known_.pop_back();
    known_.emplace_front(std::move(graph), lists);
    return lists;
  }

 private:
  static constexpr size_t kMost = 64;
  std::list<std::pair<LayerGraph, std::shared_ptr<const LayerLists>>> known_;
};

// One layer of the sequence; `x`: the type that goes in.
absl::StatusOr<ExpandedLayer> Expand(const LayerSpec& spec, const ValueType& x, int index,
                                     double branch_stddev, const NetworkFacts& network,
                                     const LayerPlace& place, KnownLists& known) {
  ExpandedLayer layer;
  layer.index = index;
  layer.label = LayerLabel(spec);
  layer.spec = spec;
  layer.width_in = x.element == Element::kIds ? 0 : x.shape.back();
  LayerBuilder builder(index, branch_stddev, network);
  const ValueId input = builder.writer().Input(x);
  ASSIGN_OR_RETURN(const ValueId y, BuildLayer(spec, input, place, builder));
  layer.width_out = builder.WidthOf(y);
  ASSIGN_OR_RETURN(BuiltLayer built, Annotate(builder.Finish(y), place.path));
  layer.parameters = std::move(built.parameters);
  layer.lists = known.Of(std::move(built.graph));
  return layer;
}

absl::Status CheckDimensions(const std::string& path, int64_t width, int64_t context,
                             int64_t vocabulary) {
  RETURN_IF_ERROR(CheckInteger(path + ".width", width, 1, kMaxWidth));
  RETURN_IF_ERROR(CheckInteger(path + ".context", context, 1, kMaxContext));
  return CheckInteger(path + ".vocabulary", vocabulary, 2, kMaxVocabulary);
}

absl::Status CheckTotal(const ExpandedModel& model, const std::string& path) {
  int64_t total = 0;
  for (const ExpandedLayer& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) total += parameter.shape.elements();
    if (total > kMaxParameters) {
      return FieldError(path, absl::StrCat("over ", kMaxParameters, " parameters"),
                        "use smaller or fewer layers");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ExpandedModel> ExpandList(const LayerListSpec& spec, const std::string& path) {
  RETURN_IF_ERROR(CheckDimensions(path, spec.width, spec.context, spec.vocabulary));
  const std::string list = path + ".layers";
  RETURN_IF_ERROR(
      CheckInteger(list + " (count)", static_cast<int64_t>(spec.layers.size()), 1, kMaxLayers));
  ExpandedModel model{.context = spec.context, .vocabulary = spec.vocabulary, .layers = {}};
  const NetworkFacts network{.vocabulary = spec.vocabulary, .width = spec.width};
  const double branch_stddev = BranchStddev(spec.layers);
  ValueType x{Element::kIds, Leading::kSamples, {spec.context}};
  KnownLists known;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerPlace place{.path = absl::StrCat(list, "[", i, "]")};
    ASSIGN_OR_RETURN(ExpandedLayer layer, Expand(spec.layers[i], x, static_cast<int>(i),
                                                 branch_stddev, network, place, known));
    x = ActivationType({spec.context, layer.width_out});
    model.layers.push_back(std::move(layer));
  }
  const int64_t width = model.layers.back().width_out;
  if (width != spec.vocabulary) {
    return FieldError(absl::StrCat(list, "[", spec.layers.size() - 1, "]"),
                      absl::StrCat("gives width ", width),
                      absl::StrCat("the last layer must give logits of the vocabulary: end with "
                                   "linear: {out: ",
                                   spec.vocabulary, "}"));
  }
  RETURN_IF_ERROR(CheckTotal(model, path));
  return model;
}

absl::StatusOr<ExpandedModel> ExpandGpt(const GptSpec& spec) {
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

absl::StatusOr<ExpandedModel> ExpandModel(const ModelSpec& model, Precision precision) {
  struct Visitor {
    absl::StatusOr<ExpandedModel> operator()(const GptSpec& gpt) const { return ExpandGpt(gpt); }
    absl::StatusOr<ExpandedModel> operator()(const LayerListSpec& list) const {
      return ExpandList(list, "model.sequence");
    }
  };
  absl::StatusOr<ExpandedModel> expanded = std::visit(Visitor{}, model);
  if (expanded.ok()) expanded->precision = precision;
  return expanded;
}

}  // namespace stagecoach
