// PictureForm: the changes to a picture before a network reads it, in an evaluation and where
// trained weights are used.
// Threads: pure functions.
// Units and shapes: images [height, width, channels], masks [height, width].
#ifndef STAGECOACH_STAGE_DATA_PICTURE_FORM_H_
#define STAGECOACH_STAGE_DATA_PICTURE_FORM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/numbers/shape.h"
#include "plan/job/picture_fields.h"
#include "stage/pictures/augment.h"

namespace stagecoach {

struct PictureForm {
  Augmentation augmentation;
  int64_t channels = 0;                 // 0: masks
  bool upright = false;                 // turned as their EXIF says
  std::vector<double> mean, deviation;  // one for each channel

  size_t pixels() const { return static_cast<size_t>(augmentation.height * augmentation.width); }
  size_t numbers() const { return pixels() * static_cast<size_t>(channels); }
};

// read: the shape of the network's image or mask. If the job's pictures are to be measured, mean
// and deviation are 0 and 1.
PictureForm FormOfPictures(const PictureFields& fields, const Shape& read);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PICTURE_FORM_H_
