#include "network/layer_builder.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "network/limits.h"

namespace stagecoach {
namespace {

absl::Status PathError(const LayerPlace& place, const absl::Status& why) {
  return absl::InvalidArgumentError(absl::StrCat(place.path, ": ", why.message()));
}

// Layers that read ids stand in front, and the others behind them.
absl::Status CheckStanding(const LayerKind& kind, Element element, bool images,
                           const LayerPlace& place) {
  const bool ids = element == Element::kIds;
  if (kind.ReadsIds() == ids) return absl::OkStatus();
  if (!ids) {
    return FieldError(place.path, std::string(kind.name()),
                      images ? "reads token ids, and this network reads images: leave it out"
                             : "allowed as the first layer only");
  }
  std::vector<std::string> first;
  for (const LayerKind* known : AllLayerKinds()) {
    if (known->ReadsIds()) first.emplace_back(known->name());
  }
  return FieldError(place.path, std::string(kind.name()),
                    absl::StrCat("the first layer must be an ", absl::StrJoin(first, " or ")));
}

absl::Status CheckImageSize(const LayerPlace& place, const ValueType& y) {
  if (y.shape.rank() < 3 || y.shape.elements() <= kMaxImageNumbers) return absl::OkStatus();
  return FieldError(
      place.path,
      absl::StrCat("gives ", FormatType(y), ", ", y.shape.elements(), " numbers a sample"),
      absl::StrCat("at most ", kMaxImageNumbers, ": a larger stride, or fewer channels"));
}

}  // namespace

double HeStddev(int64_t inputs) { return std::sqrt(2.0 / static_cast<double>(inputs)); }

std::string NamePrefix(int layer_index) { return absl::StrFormat("model/%04d/", layer_index); }

std::string FieldPath(const LayerPlace& place, std::string_view kind, std::string_view field) {
  return absl::StrCat(place.path, ".", std::string(kind), ".", std::string(field));
}

std::string LayerBuilder::NameOf(const LayerPlace& place, const char* name) const {
  return absl::StrCat(NamePrefix(layer_index_), place.prefix, name);
}

ValueId LayerBuilder::Add(const LayerPlace& place, const char* name, Shape shape,
                          ParameterSpec::Init init, double stddev, Element element) {
  ParameterSpec parameter;
  parameter.name = NameOf(place, name);
  parameter.decay = shape.rank() >= 2;
  parameter.shape = shape;
  parameter.init = init;
  parameter.init_stddev = stddev;
  parameter.index = static_cast<int>(parameters_.size());
  parameters_.push_back(std::move(parameter));
  return writer_.Parameter(element, std::move(shape));
}

ValueId LayerBuilder::Weight(const LayerPlace& place, const char* name, Shape shape,
                             double stddev) {
  return Add(place, name, std::move(shape), ParameterSpec::Init::kNormal, stddev,
             Element::kActivation);
}

ValueId LayerBuilder::Bias(const LayerPlace& place, const char* name, Shape shape) {
  return Add(place, name, std::move(shape), ParameterSpec::Init::kZeros, 0, Element::kActivation);
}

ValueId LayerBuilder::Float32(const LayerPlace& place, const char* name, Shape shape,
                              ParameterSpec::Init init) {
  return Add(place, name, std::move(shape), init, 0, Element::kFloat32);
}

ValueId LayerBuilder::State(const LayerPlace& place, const char* name, Shape shape, float initial) {
  states_.push_back({NameOf(place, name), shape, initial});
  return writer_.State(std::move(shape));
}

absl::Status LayerBuilder::CheckSizes(const LayerPlace& place, ValueId y) const {
  for (const ParameterSpec& parameter : parameters_) {
    if (parameter.shape.elements() <= kMaxArray) continue;
    return FieldError(
        place.path,
        absl::StrCat(parameter.name, " would have ", parameter.shape.elements(), " elements"),
        absl::StrCat("at most ", kMaxArray));
  }
  return CheckImageSize(place, writer_.type(y));
}

absl::StatusOr<BuiltLayer> LayerBuilder::Finish(std::vector<ValueId> outputs) {
  BuiltLayer built;
  ASSIGN_OR_RETURN(built.graph, writer_.Finish(std::move(outputs)));
  built.parameters = std::move(parameters_);
  built.states = std::move(states_);
  return built;
}

absl::StatusOr<ValueId> BuildLayer(const LayerSpec& spec, ValueId x, const LayerPlace& place,
                                   LayerBuilder& builder) {
  const absl::StatusOr<const LayerKind*> kind = FindLayerKind(spec.kind);
  if (!kind.ok()) return PathError(place, kind.status());
  RETURN_IF_ERROR(
      CheckStanding(**kind, builder.writer().type(x).element, builder.network().images, place));
  if (!spec.layers.empty() && !(*kind)->HasLayers()) {
    return FieldError(place.path, spec.kind, "has no layers inside");
  }
  ASSIGN_OR_RETURN(const ValueId y, (*kind)->Build(spec, x, place, builder));
  // What the operations themselves refuse.
  if (!builder.writer().status().ok()) return PathError(place, builder.writer().status());
  if (builder.parameters() > static_cast<size_t>(kMaxLayerParameters)) {
    return FieldError(place.path,
                      absl::StrCat("more than ", kMaxLayerParameters, " parameter arrays"),
                      "split the layer");
  }
  if (builder.writer().draws() > kMaxDraws) {
    return FieldError(place.path,
                      absl::StrCat("more than ", kMaxDraws, " layers that draw random numbers"),
                      "split the layer");
  }
  RETURN_IF_ERROR(builder.CheckSizes(place, y));
  return y;
}

}  // namespace stagecoach
