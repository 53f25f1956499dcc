// Resampling: a picture, or a part of one, at another size. Bilinear with antialias: each new pixel
// is a mean of the old ones under a triangle. If the picture gets smaller, the triangle is as wide
// as a new pixel. Weights are rounded to 22 bits behind the point. Sums are of integers, first
// along rows, then along columns, each rounded to a byte. On every machine these are the bytes of
// Pillow's resize(size, BILINEAR), on which PyTorch's transforms are built.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_PICTURES_RESAMPLE_H_
#define STAGECOACH_STAGE_PICTURES_RESAMPLE_H_

#include <cstdint>

#include "stage/pictures/picture.h"

namespace stagecoach {

// Rows [top, top + height) and columns [left, left + width).
struct PictureBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
  friend bool operator==(const PictureBox&, const PictureBox&) = default;
};

// box lies in the picture; height and width are 1 or more. Pixels outside of the box do not count.
Picture Resample(const Picture& picture, const PictureBox& box, int64_t height, int64_t width);
// Only the rows and columns `part` of Resample's result. Memory is in proportion to the part and
// its source.
Picture ResamplePart(const Picture& picture, const PictureBox& box, int64_t height, int64_t width,
                     const PictureBox& part);
Picture Crop(const Picture& picture, const PictureBox& box);

// The nearest pixel instead of a mean: new pixel (y, x) is the box's pixel that its center lies in.
// For masks, whose numbers are names.
Picture NearestPart(const Picture& picture, const PictureBox& box, int64_t height, int64_t width,
                    const PictureBox& part);

// If a side is more than this many times the other one, only its middle is resized.
inline constexpr int64_t kMostAspect = 32;

// The middle [height, width] of a picture whose shorter side was resized to `shorter`, the longer
// one in proportion, rounded down: Resize(shorter) and CenterCrop of PyTorch's transforms. shorter
// is at least height and width.
Picture FitByShorterSide(const Picture& picture, int64_t shorter, int64_t height, int64_t width);
// The same with the smallest size that covers [height, width].
Picture FitToCover(const Picture& picture, int64_t height, int64_t width);

// The plan of both functions: resize the box to [rows, columns], and take `part` of that.
struct PictureFit {
  PictureBox box;
  int64_t rows = 0, columns = 0;
  PictureBox part;
};
PictureFit ShorterSideFit(const Picture& picture, int64_t shorter, int64_t height, int64_t width);
PictureFit CoveringFit(const Picture& picture, int64_t height, int64_t width);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_PICTURES_RESAMPLE_H_
