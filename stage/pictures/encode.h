// Encoding of pictures as PNG files, by libpng.
// Threads: pure functions, any thread.
// Errors:  RESOURCE_EXHAUSTED: no memory.
#ifndef STAGECOACH_STAGE_PICTURES_ENCODE_H_
#define STAGECOACH_STAGE_PICTURES_ENCODE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

// `picture` has 1 or 3 channels.
absl::StatusOr<std::vector<uint8_t>> EncodePng(const Picture& picture);

// A mask: the ids of one channel as indexes of a palette, one byte each. All are below `classes`,
// 256 at most.
absl::StatusOr<std::vector<uint8_t>> EncodeMask(const Picture& mask, int64_t classes);

// Red, green and blue of a class: the colours of PASCAL VOC's masks, of which class 0 is black.
std::array<uint8_t, 3> MaskColour(int64_t id);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_ENCODE_H_
