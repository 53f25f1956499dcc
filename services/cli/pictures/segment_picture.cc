#include "services/cli/pictures/segment_picture.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/pictures/resample.h"

namespace stagecoach {
namespace {

// The likeliest class of each pixel, into the mask's place of the part.
absl::Status PutClasses(const std::vector<float>& logits, int64_t classes, const PictureBox& part,
                        Picture* mask) {
  const auto finite = [](float logit) { return std::isfinite(logit); };
  if (!std::all_of(logits.begin(), logits.end(), finite)) {
    return absl::DataLossError("the network gives numbers that are not finite for it");
  }
  const float* of_pixel = logits.data();
  for (int64_t y = 0; y < part.height; ++y) {
    uint8_t* const row = mask->row(part.top + y) + part.left;
    for (int64_t x = 0; x < part.width; ++x, of_pixel += classes) {
      row[x] = static_cast<uint8_t>(std::max_element(of_pixel, of_pixel + classes) - of_pixel);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int64_t> PartStarts(int64_t length, int64_t part) {
  CHECK(part >= 1 && part <= length) << part << " of " << length;
  std::vector<int64_t> starts;
  for (int64_t start = 0; start < length - part; start += part) starts.push_back(start);
  starts.push_back(length - part);
  return starts;
}

absl::StatusOr<Picture> SegmentPicture(const PictureNetwork& network, const Picture& picture) {
  const Augmentation& form = network.form().augmentation;
  CHECK_LE(network.classes(), 256) << "ids are bytes";
  const PictureFit fit = form.shorter_side > 0
                             ? ShorterSideFit(picture, form.shorter_side, form.height, form.width)
                             : CoveringFit(picture, form.height, form.width);
  const PictureBox whole{.height = picture.height, .width = picture.width};
  if (fit.box != whole) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a picture of ", picture.width, " x ", picture.height, " pixels: one side is more than ",
        kMostAspect, " times the other; cut it into several"));
  }
  std::vector<PictureBox> parts;
  for (const int64_t top : PartStarts(fit.rows, form.height)) {
    for (const int64_t left : PartStarts(fit.columns, form.width)) {
      parts.push_back({.top = top, .left = left, .height = form.height, .width = form.width});
    }
  }
  Picture mask(fit.rows, fit.columns, 1);
  for (size_t first = 0; first < parts.size(); first += network.batch()) {
    const size_t end = std::min(parts.size(), first + network.batch());
    std::vector<Picture> read;
    for (size_t i = first; i < end; ++i) {
      read.push_back(ResamplePart(picture, fit.box, fit.rows, fit.columns, parts[i]));
    }
    ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, network.Run(read));
    for (size_t i = first; i < end; ++i) {
      RETURN_IF_ERROR(PutClasses(logits[i - first], network.classes(), parts[i], &mask));
    }
  }
  const PictureBox all{.height = fit.rows, .width = fit.columns};
  return NearestPart(mask, all, picture.height, picture.width, whole);
}

}  // namespace stagecoach
