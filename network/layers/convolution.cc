#include "network/layers/convolution.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_kind.h"
#include "network/layers/image_fields.h"
#include "operations/images/convolution.h"

namespace stagecoach {
namespace {

class ConvolutionLayer final : public LayerKindOf<ConvolutionSpec> {
  absl::StatusOr<ValueId> Write(const ConvolutionSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    if (spec.kernel.empty()) {
      return FieldError(FieldPath(place, name(), "kernel"), "not given",
                        "give one number, or height and width");
    }
    const ConvolutionAttributes attributes{.steps = StepsOf(spec), .bias = spec.bias};
    const ConvolutionSteps& steps = attributes.steps;
    const Window window{PlaneOfField(spec.kernel, {}), steps.stride, steps.padding, steps.dilation};
    const ValueType image = builder.writer().type(x);
    RETURN_IF_ERROR(CheckWindow(name(), window, image, place));
    const int64_t in = image.shape[2];
    if (in % spec.groups != 0 || spec.out % spec.groups != 0) {
      return FieldError(FieldPath(place, name(), "groups"), absl::StrCat(spec.groups),
                        absl::StrCat("must divide the ", in, " channels of ", FormatType(image),
                                     " and the ", spec.out, " that it gives"));
    }
    const Shape weight{spec.out, window.size.height, window.size.width, in / spec.groups};
    std::vector<ValueId> inputs = {
        x, builder.Weight(place, "weight", weight, HeStddev(weight.elements() / spec.out))};
    if (spec.bias) inputs.push_back(builder.Bias(place, "bias", {spec.out}));
    return builder.writer().Emit("convolution", ToAttributes(attributes), std::move(inputs))[0];
  }

  // The kernel's size is in the weight's shape.
  std::string FunctionOf(const ConvolutionSpec& spec) const override {
    const ConvolutionSteps steps = StepsOf(spec), plain;
    std::string text = absl::StrCat("convolution:", spec.out);
    const auto add = [&text](const char* field, const Plane& plane, const Plane& unless) {
      if (plane != unless) absl::StrAppend(&text, ":", field, "=", PlaneText(plane));
    };
    add("stride", steps.stride, plain.stride);
    add("padding", steps.padding, plain.padding);
    add("dilation", steps.dilation, plain.dilation);
    if (spec.groups > 1) absl::StrAppend(&text, ":groups=", spec.groups);
    return text;
  }

  static ConvolutionSteps StepsOf(const ConvolutionSpec& spec) {
    return {.stride = PlaneOfField(spec.stride, {1, 1}),
            .padding = PlaneOfField(spec.padding, {0, 0}),
            .dilation = PlaneOfField(spec.dilation, {1, 1}),
            .groups = spec.groups};
  }
};

}  // namespace

const LayerKind* ConvolutionKind() {
  static const ConvolutionLayer kind;
  return &kind;
}

}  // namespace stagecoach
