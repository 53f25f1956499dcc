#include "network/layers/pools.h"

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_builder.h"
#include "network/layer_kind.h"
#include "network/layers/image_fields.h"
#include "operations/images/pool.h"

namespace stagecoach {
namespace {

// Without a stride it is the kernel's.
PoolSteps MakePoolSteps(const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride,
                        const std::vector<int64_t>& padding) {
  const Plane window = PlaneOfField(kernel, {1, 1});
  return {.window = window,
          .stride = PlaneOfField(stride, window),
          .padding = PlaneOfField(padding, {0, 0})};
}

absl::Status CheckPool(std::string_view kind, bool kernel_given, const PoolSteps& steps,
                       const ValueType& x, const LayerPlace& place) {
  if (!kernel_given) {
    return FieldError(FieldPath(place, kind, "kernel"), "not given",
                      "give one number, or height and width");
  }
  if (2 * steps.padding.height > steps.window.height ||
      2 * steps.padding.width > steps.window.width) {
    return FieldError(
        FieldPath(place, kind, "padding"), PlaneText(steps.padding),
        absl::StrCat("must be at most half of the kernel, which is ", PlaneText(steps.window)));
  }
  return CheckWindow(kind, {steps.window, steps.stride, steps.padding, {1, 1}}, x, place);
}

std::string PoolFunction(std::string_view kind, const PoolSteps& steps) {
  std::string text = absl::StrCat(std::string(kind), ":", PlaneText(steps.window));
  if (steps.stride != steps.window) absl::StrAppend(&text, ":stride=", PlaneText(steps.stride));
  if (steps.padding != Plane{0, 0}) absl::StrAppend(&text, ":padding=", PlaneText(steps.padding));
  return text;
}

template <typename Spec>
PoolSteps PoolStepsOf(const Spec& spec) {
  return MakePoolSteps(spec.kernel, spec.stride, spec.padding);
}

// Of a pool that fits its image.
template <typename Spec>
absl::StatusOr<PoolSteps> CheckedSteps(std::string_view kind, const Spec& spec, const ValueType& x,
                                       const LayerPlace& place) {
  const PoolSteps steps = PoolStepsOf(spec);
  const absl::Status status = CheckPool(kind, !spec.kernel.empty(), steps, x, place);
  if (!status.ok()) return status;
  return steps;
}

class MaxPoolLayer final : public LayerKindOf<MaxPoolSpec> {
  absl::StatusOr<ValueId> Write(const MaxPoolSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    LayerWriter& writer = builder.writer();
    ASSIGN_OR_RETURN(const PoolSteps steps, CheckedSteps(name(), spec, writer.type(x), place));
    const MaxPoolAttributes attributes{steps};
    return writer.Emit("max_pool", ToAttributes(attributes), {x})[0];
  }
  std::string FunctionOf(const MaxPoolSpec& spec) const override {
    return PoolFunction(name(), PoolStepsOf(spec));
  }
};

class AveragePoolLayer final : public LayerKindOf<AveragePoolSpec> {
  absl::StatusOr<ValueId> Write(const AveragePoolSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    LayerWriter& writer = builder.writer();
    ASSIGN_OR_RETURN(const PoolSteps steps, CheckedSteps(name(), spec, writer.type(x), place));
    const AveragePoolAttributes attributes{steps, spec.count_padding};
    return writer.Emit("average_pool", ToAttributes(attributes), {x})[0];
  }
  std::string FunctionOf(const AveragePoolSpec& spec) const override {
    return PoolFunction(name(), PoolStepsOf(spec)) + (spec.count_padding ? ":count_padding" : "");
  }
};

class GlobalPoolLayer final : public LayerKindOf<GlobalPoolSpec> {
  absl::StatusOr<ValueId> Write(const GlobalPoolSpec&, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    RETURN_IF_ERROR(CheckReadsImage(name(), builder.writer().type(x), place));
    return builder.writer().Emit("global_average_pool", {}, {x})[0];
  }
};

}  // namespace

const LayerKind* MaxPoolKind() {
  static const MaxPoolLayer kind;
  return &kind;
}

const LayerKind* AveragePoolKind() {
  static const AveragePoolLayer kind;
  return &kind;
}

const LayerKind* GlobalPoolKind() {
  static const GlobalPoolLayer kind;
  return &kind;
}

}  // namespace stagecoach
