// Orientation: how a camera was held, as EXIF notes it in a picture's file, and pictures that are
// turned by it. Orientation 1 is upright; 2 to 8 are the other turns and mirrors of EXIF 2.3, tag
// 0x0112.
// Threads: pure functions, any thread.
// Errors:  none: if the note is cut off, damaged or invalid, the orientation is 1.
#ifndef STAGECOACH_STAGE_PICTURES_ORIENTATION_H_
#define STAGECOACH_STAGE_PICTURES_ORIENTATION_H_

#include <cstdint>
#include <span>

#include "stage/pictures/picture.h"

namespace stagecoach {

// The orientation of a JPEG, PNG or WebP file, or of its beginning. 1 for TIFF: its decoder turns
// the picture.
int OrientationOf(std::span<const uint8_t> file);

// The picture turned upright; unchanged for an orientation outside 2 to 8.
Picture Turned(Picture picture, int orientation);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_ORIENTATION_H_
