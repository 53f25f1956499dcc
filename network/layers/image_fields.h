// Helpers of layers on images. Fields are one number, or height and width. An input is refused if
// it is no image, or is smaller than the window that moves over it.
// Errors: INVALID_ARGUMENT with the field's path in the job, the input's type, the requirement and
// the remedy.
#ifndef STAGECOACH_NETWORK_LAYERS_IMAGE_FIELDS_H_
#define STAGECOACH_NETWORK_LAYERS_IMAGE_FIELDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "network/layer_builder.h"
#include "operations/images/window.h"

namespace stagecoach {

// One number stands for both extents, two for height and width. An empty list gives `unless`.
Plane PlaneOfField(const std::vector<int64_t>& numbers, const Plane& unless);
std::string PlaneText(const Plane& plane);  // "3x3"

absl::Status CheckReadsImage(std::string_view kind, const ValueType& x, const LayerPlace& place);
// Also checks that the window, with its dilation, fits into the padded image.
absl::Status CheckWindow(std::string_view kind, const Window& window, const ValueType& x,
                         const LayerPlace& place);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_IMAGE_FIELDS_H_
