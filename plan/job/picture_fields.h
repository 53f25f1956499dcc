// PictureFields: options of every source of pictures for their processing
// (stage/pictures/augment.h, docs/formats.md).
// Threads: a plain value.
#ifndef STAGECOACH_PLAN_JOB_PICTURE_FIELDS_H_
#define STAGECOACH_PLAN_JOB_PICTURE_FIELDS_H_

#include <cstdint>
#include <vector>

namespace stagecoach {

// Treatment of records that cannot be read.
enum class OnBadRecord { kFail, kSkip };

struct PictureFields {
  std::vector<double> mean, deviation;  // by channel, or one for all; empty: 0 and 1
  bool measure = false;                 // mean and deviation are those of the pictures to train on
  int64_t shorter_side = 0;             // 0: the picture just covers the network's image
  double random_area = 0;               // 0: no random parts
  int64_t padding = 0;
  bool flip = false;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
  int64_t cutout = 0;
  int64_t decode_threads = 1;
  bool exif_orientation = false;  // of sources that read files; their kinds visit it
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Weights("mean", mean, 1e-9, 1, 3);
    visit.Weights("deviation", deviation, 1e-6, 1e6, 3);
    visit.Flag("measure", measure);
    visit.Count("shorter_side", shorter_side, 0, 8192);
    VisitDrawn(visit);
    visit.Count("decode_threads", decode_threads, 0, 256);
  }
  // The random changes of a picture to train on.
  template <typename Visitor>
  void VisitDrawn(Visitor& visit) {
    visit.ZeroOrBetween("random_area", random_area, 1e-4, 1);
    visit.Count("padding", padding, 0, 8192);
    visit.Flag("flip", flip);
    visit.Rate("brightness", brightness);
    visit.Rate("contrast", contrast);
    visit.Rate("saturation", saturation);
    visit.Between("hue", hue, 0, 0.5);
    visit.Count("cutout", cutout, 0, 8192);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_PICTURE_FIELDS_H_
