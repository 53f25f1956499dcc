#include "stage/data/picture_form.h"

namespace stagecoach {
namespace {

// One for all channels, or one each.
std::vector<double> ByChannel(const std::vector<double>& given, int64_t channels, double usual) {
  if (given.size() > 1) return given;
  return std::vector<double>(static_cast<size_t>(channels), given.empty() ? usual : given.front());
}

}  // namespace

PictureForm FormOfPictures(const PictureFields& fields, const Shape& read) {
  PictureForm form{
      .augmentation = {.height = read[0],
                       .width = read[1],
                       .shorter_side = fields.shorter_side,
                       .least_area = fields.random_area,
                       .padding = fields.padding,
                       .flip = fields.flip,
                       .brightness = fields.brightness,
                       .contrast = fields.contrast,
                       .saturation = fields.saturation,
                       .hue = fields.hue,
                       .cutout = fields.cutout},
  };
  form.upright = fields.exif_orientation;
  if (read.rank() < 3) return form;
  form.channels = read[2];
  form.mean = ByChannel(fields.mean, form.channels, 0);
  form.deviation = ByChannel(fields.deviation, form.channels, 1);
  return form;
}

}  // namespace stagecoach
