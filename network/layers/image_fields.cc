#include "network/layers/image_fields.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "operations/attributes.h"

namespace stagecoach {
namespace {

int64_t Reach(int64_t size, int64_t dilation) { return dilation * (size - 1) + 1; }

}  // namespace

Plane PlaneOfField(const std::vector<int64_t>& numbers, const Plane& unless) {
  if (numbers.empty()) return unless;
  return {numbers.front(), numbers.back()};
}

std::string PlaneText(const Plane& plane) { return absl::StrCat(plane.height, "x", plane.width); }

absl::Status CheckReadsImage(std::string_view kind, const ValueType& x, const LayerPlace& place) {
  if (CheckImage("x", x).ok()) return absl::OkStatus();
  return FieldError(
      place.path, absl::StrCat(std::string(kind), " of ", FormatType(x)),
      absl::StrCat("reads activation[n, height, width, channels] with extents <= ", kMaxExtent,
                   ": put it in front of flatten and global_pool, in a network that "
                   "has an image"));
}

absl::Status CheckWindow(std::string_view kind, const Window& window, const ValueType& x,
                         const LayerPlace& place) {
  RETURN_IF_ERROR(CheckReadsImage(kind, x, place));
  if (PlacesOf(window, PlaneOf(x)).ok()) return absl::OkStatus();
  const Plane reach = {Reach(window.size.height, window.dilation.height),
                       Reach(window.size.width, window.dilation.width)};
  const Plane padded = {x.shape[0] + 2 * window.padding.height,
                        x.shape[1] + 2 * window.padding.width};
  return FieldError(
      FieldPath(place, kind, "kernel"), PlaneText(window.size),
      absl::StrCat("reaches over ", PlaneText(reach), " of ", FormatType(x), ", which is ",
                   PlaneText(padded), " with its padding: take a smaller kernel, or more padding"));
}

}  // namespace stagecoach
