// ShownPicture: a picture for people to look at, as a small PNG file.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_DATA_SHOWN_PICTURE_H_
#define STAGECOACH_STAGE_DATA_SHOWN_PICTURE_H_

#include <string>

#include "stage/pictures/picture.h"

namespace stagecoach {

// `picture` has 1 or 3 channels. The result's sides have at most kShownSide pixels
// (plan/job/held_out.h). Empty: there was no memory.
std::string ShownPicture(const Picture& picture);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SHOWN_PICTURE_H_
