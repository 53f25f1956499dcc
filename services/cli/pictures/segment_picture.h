// SegmentPicture: a class for each pixel of a picture of any size, by a network with one image
// size.
//
// The picture is resized as the job's held-out ones were. The job then cropped those to the
// network's size. Here tiles of that size cover the whole picture, side by side. The last tile of a
// row or column is shifted back to end with the picture. Each of the picture's own pixels gets the
// class of the nearest one.
// Threads: as PictureNetwork.
// Errors:  INVALID_ARGUMENT: one side is more than kMostAspect times the other. DATA_LOSS: the
//          network gives numbers that are not finite. Else as PictureNetwork::Run.
#ifndef STAGECOACH_SERVICES_CLI_PICTURES_SEGMENT_PICTURE_H_
#define STAGECOACH_SERVICES_CLI_PICTURES_SEGMENT_PICTURE_H_

#include "absl/status/statusor.h"
#include "services/cli/pictures/picture_network.h"

namespace stagecoach {

// Ids are bytes: the network tells at most 256 classes apart. Of the picture's size, one channel.
absl::StatusOr<Picture> SegmentPicture(const PictureNetwork& network, const Picture& picture);

// Begins of parts of size `part` that cover `length`, ascending.
std::vector<int64_t> PartStarts(int64_t length, int64_t part);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PICTURES_SEGMENT_PICTURE_H_
