#include "network/layer_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/field_check.h"
#include "base/status.h"
#include "network/limits.h"

namespace stagecoach {

ValueId LayerBuilder::Add(const LayerPlace& place, const char* name, Shape shape,
                          ParameterSpec::Init init, double stddev, Element element) {
  ParameterSpec parameter;
  parameter.name = absl::StrFormat("model/%04d/%s%s", layer_index_, place.prefix, name);
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

absl::Status LayerBuilder::CheckArrays(const LayerPlace& place) const {
  for (const ParameterSpec& parameter : parameters_) {
    if (parameter.shape.elements() <= kMaxArray) continue;
    return FieldError(
        place.path,
        absl::StrCat(parameter.name, " would have ", parameter.shape.elements(), " elements"),
        absl::StrCat("at most ", kMaxArray));
  }
  return absl::OkStatus();
}

absl::StatusOr<BuiltLayer> LayerBuilder::Finish(ValueId output) {
  BuiltLayer built;
  ASSIGN_OR_RETURN(built.graph, writer_.Finish({output}));
  built.parameters = std::move(parameters_);
  return built;
}

absl::StatusOr<ValueId> BuildLayer(const LayerSpec& spec, ValueId x, const LayerPlace& place,
                                   LayerBuilder& builder) {
  struct Visitor {
    ValueId x;
    const LayerPlace& place;
    LayerBuilder& builder;
    absl::StatusOr<ValueId> operator()(const EmbeddingSpec&) const {
      return FieldError(place.path, "embedding", "allowed as the first layer only");
    }
    absl::StatusOr<ValueId> operator()(const LayerNormSpec&) const {
      return BuildLayerNorm(x, place, builder);
    }
    absl::StatusOr<ValueId> operator()(const AttentionSpec& s) const {
      return BuildAttention(s, x, place, builder);
    }
    absl::StatusOr<ValueId> operator()(const MlpSpec& s) const {
      return BuildMlp(s, x, place, builder);
    }
    absl::StatusOr<ValueId> operator()(const LinearSpec& s) const {
      return BuildLinear(s, x, place, builder);
    }
    absl::StatusOr<ValueId> operator()(const GeluSpec&) const { return BuildGelu(x, builder); }
    absl::StatusOr<ValueId> operator()(const DropoutSpec& s) const {
      return BuildDropout(s, x, place, builder);
    }
    absl::StatusOr<ValueId> operator()(const ResidualSpec& s) const {
      return BuildResidual(s, x, place, builder);
    }
  };
  ASSIGN_OR_RETURN(const ValueId y, std::visit(Visitor{x, place, builder}, spec.kind));
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
  RETURN_IF_ERROR(builder.CheckArrays(place));
  return y;
}

}  // namespace stagecoach
