#include "plan/data/picture_checks.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

absl::Status CheckNumbers(const std::string& path, const std::vector<double>& numbers,
                          int64_t channels) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (count <= 1 || count == channels) return absl::OkStatus();
  return FieldError(path, absl::StrCat("[", absl::StrJoin(numbers, ", "), "]"),
                    absl::StrCat("must be one number, or one for each of the ", channels,
                                 channels == 1 ? " channel" : " channels"));
}

absl::Status CheckNormalization(const std::string& prefix, const PictureFields& fields,
                                int64_t channels) {
  RETURN_IF_ERROR(CheckNumbers(prefix + "mean", fields.mean, channels));
  RETURN_IF_ERROR(CheckNumbers(prefix + "deviation", fields.deviation, channels));
  if (std::count(fields.deviation.begin(), fields.deviation.end(), 0.0) > 0) {
    return FieldError(prefix + "deviation", "0", "must be above 0: pixels are divided by it");
  }
  if (fields.measure && !(fields.mean.empty() && fields.deviation.empty())) {
    return FieldError(prefix + "measure", "true", "must be false where mean or deviation is given");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<DataInput> PictureInputs() {
  return {{.name = "images", .ids = false, .extents = {"height", "width", "channels"}},
          {.name = "labels", .ids = true, .extents = {}}};
}

absl::Status CheckColours(const std::string& prefix, const PictureFields& fields,
                          const Network& network) {
  const WireId images = network.InputNamed("images");
  if (!images.valid()) return absl::OkStatus();
  const int64_t channels = network.wire(images).type.shape[2];
  if (channels == 3) return absl::OkStatus();
  const std::string why =
      channels == 1
          ? std::string("grey images have no colours")
          : absl::StrCat("images of ", channels, " channels are neither grey (1) nor colours (3)");
  for (const auto& [name, share, of_grey] :
       {std::tuple("brightness", fields.brightness, true),
        std::tuple("contrast", fields.contrast, true),
        std::tuple("saturation", fields.saturation, false), std::tuple("hue", fields.hue, false)}) {
    if (share == 0 || (channels == 1 && of_grey)) continue;
    return FieldError(prefix + name, absl::StrCat(share), absl::StrCat("must be 0: ", why));
  }
  return absl::OkStatus();
}

absl::Status CheckPictureFields(const std::string& kind, const PictureFields& fields,
                                const Network& network) {
  const WireId images = network.InputNamed("images");
  if (!images.valid()) return absl::OkStatus();
  const Shape& image = network.wire(images).type.shape;
  const std::string prefix = absl::StrCat("data.", kind, ".");
  const int64_t height = image[0], width = image[1], channels = image[2];
  if (channels != 1 && channels != 3) {
    return FieldError(
        absl::StrCat("data.", kind), "gives images of 1 or 3 channels",
        absl::StrCat("the network reads ", image.ToString(), ": give it 1 (grey) or 3 (colours)"));
  }
  RETURN_IF_ERROR(CheckNormalization(prefix, fields, channels));
  RETURN_IF_ERROR(CheckColours(prefix, fields, network));
  if (fields.shorter_side > 0 && fields.shorter_side < std::max(height, width)) {
    return FieldError(prefix + "shorter_side", absl::StrCat(fields.shorter_side),
                      absl::StrCat("must be at least ", std::max(height, width),
                                   ", for the network reads ", image.ToString(), ", or 0"));
  }
  const int64_t shorter = std::min(height, width);
  for (const auto& [name, pixels] :
       {std::pair("cutout", fields.cutout), std::pair("padding", fields.padding)}) {
    if (pixels < shorter) continue;
    return FieldError(
        prefix + name, absl::StrCat(pixels),
        absl::StrCat("must be below ", shorter, ", or nothing may be left of an image: the ",
                     "network reads ", image.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
