#include "plan/model_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/field_check.h"
#include "base/status.h"
#include "plan/layer_kinds.h"

namespace stagecoach {
namespace {

// Limits far above what trains today; they keep every product of the cost model inside 64 bits.
constexpr int64_t kMaxWidth = int64_t{1} << 16;
constexpr int64_t kMaxContext = int64_t{1} << 16;
constexpr int64_t kMaxVocabulary = int64_t{1} << 20;
constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxParameters = int64_t{1} << 40;
constexpr int64_t kMaxLayers = 10000;  // four digits in the names
constexpr int64_t kMaxGptBlocks = (kMaxLayers - 3) / 2;
constexpr int64_t kMaxInnerLayers = 256;         // of one residual
constexpr int kMaxDepth = 8;                     // residuals inside residuals
constexpr int kMaxLayerParameters = 4096;        // well below the 2^15 of the random streams
constexpr int64_t kMaxArray = int64_t{1} << 32;  // elements; a stream has 2^33 normal numbers
constexpr double kInitStddev = 0.02;

// Expands one layer of the sequence, walking into residuals.
class LayerExpander {
 public:
  LayerExpander(double branch_stddev, ExpandedLayer* layer)
      : branch_stddev_(branch_stddev), layer_(layer) {}

  struct Place {
    std::string path;    // in the job spec, for errors
    std::string prefix;  // of parameter names: "", "mlp.", "residual.linear2."
    int depth = 0;       // residuals around it
    int64_t width_in = 0;
  };

  // Returns the width that comes out.
  absl::StatusOr<int64_t> Expand(const LayerSpec& spec, const Place& place) {
    RETURN_IF_ERROR(std::visit([&](const auto& kind) { return Add(kind, place); }, spec.kind));
    if (layer_->parameters.size() > static_cast<size_t>(kMaxLayerParameters)) {
      return FieldError(place.path,
                        absl::StrCat("more than ", kMaxLayerParameters, " parameter arrays"),
                        "split the layer");
    }
    for (const ParameterSpec& parameter : layer_->parameters) {
      if (parameter.shape.elements() <= kMaxArray) continue;
      return FieldError(
          place.path,
          absl::StrCat(parameter.name, " would have ", parameter.shape.elements(), " elements"),
          absl::StrCat("at most ", kMaxArray));
    }
    return LayerWidthOut(spec, place.width_in);
  }

 private:
  using Init = ParameterSpec::Init;

  void Parameter(const Place& place, const char* name, Shape shape, Init init, double stddev = 0) {
    ParameterSpec parameter;
    parameter.name = absl::StrFormat("model/%04d/%s%s", layer_->index, place.prefix, name);
    parameter.decay = shape.rank() >= 2;
    parameter.shape = std::move(shape);
    parameter.init = init;
    parameter.init_stddev = stddev;
    parameter.index = static_cast<int>(layer_->parameters.size());
    layer_->parameters.push_back(std::move(parameter));
  }

  // The projections back into the residual stream start smaller, as GPT-2's do.
  double BranchStddev(const Place& place) const {
    return place.depth > 0 ? branch_stddev_ : kInitStddev;
  }

  absl::Status Add(const EmbeddingSpec&, const Place& place) {
    return FieldError(place.path, "embedding", "allowed as the first layer only");
  }
  absl::Status Add(const LayerNormSpec&, const Place& place) {
    Parameter(place, "weight", {place.width_in}, Init::kOnes);
    Parameter(place, "bias", {place.width_in}, Init::kZeros);
    return absl::OkStatus();
  }
  absl::Status Add(const AttentionSpec& spec, const Place& place) {
    const int64_t width = place.width_in;
    RETURN_IF_ERROR(CheckInteger(place.path + ".attention.heads", spec.heads, 1, kMaxWidth));
    if (width % spec.heads != 0) {
      return FieldError(place.path + ".attention.heads", absl::StrCat(spec.heads),
                        absl::StrCat("must divide the width ", width));
    }
    RETURN_IF_ERROR(CheckRate(place.path + ".attention.dropout", spec.dropout));
    Parameter(place, "qkv.weight", {3 * width, width}, Init::kNormal, kInitStddev);
    Parameter(place, "qkv.bias", {3 * width}, Init::kZeros);
    Parameter(place, "proj.weight", {width, width}, Init::kNormal, BranchStddev(place));
    Parameter(place, "proj.bias", {width}, Init::kZeros);
    return absl::OkStatus();
  }
  absl::Status Add(const MlpSpec& spec, const Place& place) {
    RETURN_IF_ERROR(CheckInteger(place.path + ".mlp.hidden", spec.hidden, 1, kMaxHidden));
    Parameter(place, "up.weight", {spec.hidden, place.width_in}, Init::kNormal, kInitStddev);
    Parameter(place, "up.bias", {spec.hidden}, Init::kZeros);
    Parameter(place, "down.weight", {place.width_in, spec.hidden}, Init::kNormal,
              BranchStddev(place));
    Parameter(place, "down.bias", {place.width_in}, Init::kZeros);
    return absl::OkStatus();
  }
  absl::Status Add(const LinearSpec& spec, const Place& place) {
    RETURN_IF_ERROR(CheckInteger(place.path + ".linear.out", spec.out, 1, kMaxVocabulary));
    Parameter(place, "weight", {spec.out, place.width_in}, Init::kNormal, kInitStddev);
    if (spec.bias) Parameter(place, "bias", {spec.out}, Init::kZeros);
    return absl::OkStatus();
  }
  absl::Status Add(const GeluSpec&, const Place&) { return absl::OkStatus(); }
  absl::Status Add(const DropoutSpec& spec, const Place& place) {
    return CheckRate(place.path + ".dropout.rate", spec.rate);
  }
  absl::Status Add(const ResidualSpec& spec, const Place& place) {
    const std::string path = place.path + ".residual.layers";
    if (place.depth >= kMaxDepth) {
      return FieldError(path, absl::StrCat("residual number ", place.depth + 1, " inside another"),
                        absl::StrCat("at most ", kMaxDepth, " may be nested"));
    }
    RETURN_IF_ERROR(CheckInteger(path + " (count)", static_cast<int64_t>(spec.layers.size()), 1,
                                 kMaxInnerLayers));
    int64_t width = place.width_in;
    std::map<std::string, int> seen;  // kinds so far
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      const std::string kind = LayerKindName(spec.layers[i]);
      const int number = ++seen[kind];
      Place inner{.path = absl::StrCat(path, "[", i, "]"),
                  .prefix = absl::StrCat(place.prefix, kind,
                                         number > 1 ? absl::StrCat(number) : std::string(), "."),
                  .depth = place.depth + 1,
                  .width_in = width};
      ASSIGN_OR_RETURN(width, Expand(spec.layers[i], inner));
    }
    if (width != place.width_in) {
      return FieldError(path, absl::StrCat("gives width ", width, " for ", place.width_in),
                        "a residual must keep the width");
    }
    return absl::OkStatus();
  }

  const double branch_stddev_;
  ExpandedLayer* const layer_;
};

absl::StatusOr<ExpandedLayer> ExpandEmbedding(const EmbeddingSpec& spec, const std::string& path,
                                              int64_t width, const ExpandedModel& model) {
  RETURN_IF_ERROR(CheckRate(path + ".embedding.dropout", spec.dropout));
  ExpandedLayer layer;
  layer.spec.kind = spec;
  layer.label = LayerLabel(layer.spec);
  layer.width_out = width;
  const auto add = [&layer](const char* name, Shape shape) {
    layer.parameters.push_back({.name = absl::StrCat("model/0000/", name),
                                .shape = std::move(shape),
                                .init = ParameterSpec::Init::kNormal,
                                .init_stddev = kInitStddev,
                                .index = static_cast<int>(layer.parameters.size()),
                                .decay = true});
  };
  add("token.weight", {model.vocabulary, width});
  add("position.weight", {model.context, width});
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
  const auto* embedding = std::get_if<EmbeddingSpec>(&spec.layers[0].kind);
  if (embedding == nullptr) {
    return FieldError(list + "[0]", LayerKindName(spec.layers[0]),
                      "the first layer must be an embedding");
  }
  ExpandedModel model{.context = spec.context, .vocabulary = spec.vocabulary, .layers = {}};
  ASSIGN_OR_RETURN(ExpandedLayer first,
                   ExpandEmbedding(*embedding, list + "[0]", spec.width, model));
  model.layers.push_back(std::move(first));

  const auto residuals = std::count_if(
      spec.layers.begin(), spec.layers.end(),
      [](const LayerSpec& l) { return std::holds_alternative<ResidualSpec>(l.kind); });
  const double branch_stddev =
      kInitStddev / std::sqrt(static_cast<double>(std::max<int64_t>(residuals, 1)));
  int64_t width = spec.width;
  for (size_t i = 1; i < spec.layers.size(); ++i) {
    ExpandedLayer layer;
    layer.index = static_cast<int>(i);
    layer.label = LayerLabel(spec.layers[i]);
    layer.spec = spec.layers[i];
    layer.width_in = width;
    const LayerExpander::Place place{
        .path = absl::StrCat(list, "[", i, "]"), .prefix = "", .depth = 0, .width_in = width};
    ASSIGN_OR_RETURN(width, LayerExpander(branch_stddev, &layer).Expand(spec.layers[i], place));
    layer.width_out = width;
    model.layers.push_back(std::move(layer));
  }
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
