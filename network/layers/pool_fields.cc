#include "network/layers/pool_fields.h"

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "network/layers/image_fields.h"

namespace stagecoach {

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

}  // namespace stagecoach
