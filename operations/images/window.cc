#include "operations/images/window.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "operations/attributes.h"

namespace stagecoach {
namespace {

absl::StatusOr<int64_t> PlacesAlong(const char* extent_name, int64_t extent, int64_t size,
                                    int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t reach = dilation * (size - 1) + 1, padded = extent + 2 * padding;
  if (padded >= reach) return (padded - reach) / stride + 1;
  return absl::InvalidArgumentError(absl::StrCat(
      "the image's ", extent_name, " is ", extent, " and ", padded,
      " with its padding; must be at least ", reach, ", what the window reaches over"));
}

}  // namespace

absl::Status CheckExtents(std::string_view operand, const ValueType& type) {
  for (const int64_t extent : type.shape.extents()) {
    if (extent <= kMaxExtent) continue;
    return absl::InvalidArgumentError(absl::StrCat(std::string(operand), " is ", FormatType(type),
                                                   "; its extents must be <= ", kMaxExtent));
  }
  return absl::OkStatus();
}

absl::Status CheckImage(std::string_view operand, const ValueType& type) {
  if (type.element == Element::kActivation && type.leading == Leading::kSamples &&
      type.shape.rank() == 3) {
    return CheckExtents(operand, type);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(operand), " is ", FormatType(type),
                   "; must be an activation of samples, [height, width, channels]"));
}

absl::StatusOr<Plane> PlacesOf(const Window& window, const Plane& image) {
  const absl::StatusOr<int64_t> height =
      PlacesAlong("height", image.height, window.size.height, window.stride.height,
                  window.padding.height, window.dilation.height);
  if (!height.ok()) return height.status();
  const absl::StatusOr<int64_t> width =
      PlacesAlong("width", image.width, window.size.width, window.stride.width,
                  window.padding.width, window.dilation.width);
  if (!width.ok()) return width.status();
  return Plane{*height, *width};
}

}  // namespace stagecoach
