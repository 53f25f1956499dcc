// Window: how a rectangle moves over an image [height, width, channels], for convolutions and
// pools. Padding is the same on both sides of an extent.
// Errors: INVALID_ARGUMENT with the operand's type and the requirement.
#ifndef STAGECOACH_OPERATIONS_IMAGES_WINDOW_H_
#define STAGECOACH_OPERATIONS_IMAGES_WINDOW_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operations/value_type.h"

namespace stagecoach {

struct Plane {
  int64_t height = 0, width = 0;
  friend bool operator==(const Plane&, const Plane&) = default;
};

struct Window {
  Plane size;  // of the rectangle
  Plane stride{1, 1}, padding{0, 0}, dilation{1, 1};
};

// Upper bound of a rectangle in each extent. It is larger than any image that is trained on, and
// the area counts in 32 bits.
inline constexpr int64_t kMaxWindow = 4096;

// Checks that no extent is above kMaxExtent (operations/attributes.h): no product of two overflows.
absl::Status CheckExtents(std::string_view operand, const ValueType& type);
// Checks that it is an image of samples: an activation of three such extents.
absl::Status CheckImage(std::string_view operand, const ValueType& type);
inline Plane PlaneOf(const ValueType& image) { return {image.shape[0], image.shape[1]}; }

// Places of the window in each extent: floor((extent + 2 * padding - dilation * (size - 1) - 1) /
// stride) + 1. It is an error if the window does not fit once. No number is above kMaxExtent.
absl::StatusOr<Plane> PlacesOf(const Window& window, const Plane& image);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_IMAGES_WINDOW_H_
