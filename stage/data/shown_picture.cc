#include "stage/data/shown_picture.h"

#include <algorithm>

#include "plan/job/held_out.h"
#include "stage/pictures/encode.h"
#include "stage/pictures/resample.h"

namespace stagecoach {

std::string ShownPicture(const Picture& picture) {
  const int64_t longer = std::max(picture.height, picture.width);
  const auto shown = [longer](int64_t side) {
    return longer <= kShownSide ? side : std::max<int64_t>(1, side * kShownSide / longer);
  };
  const PictureBox whole{.height = picture.height, .width = picture.width};
  const auto file =
      EncodePng(Resample(picture, whole, shown(picture.height), shown(picture.width)));
  return file.ok() ? std::string(file->begin(), file->end()) : "";
}

}  // namespace stagecoach
