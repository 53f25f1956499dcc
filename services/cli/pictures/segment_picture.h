// SegmentPicture: a class for each pixel of a picture of any size, by a network that reads images of one size.
//
// The picture is resized as the job's held-out ones were. These are then cut to the network's size; here parts of that
// size are laid side by side, the last one of a row and a column shifted back to end with the picture, until all of it
// was looked at. Each of the picture's own pixels gets the class of the nearest one.
// Threads: as PictureNetwork.
// Errors:  INVALID_ARGUMENT: one side is more than kMostAspect times the other; DATA_LOSS: the network gives numbers that
//          are not finite; as PictureNetwork::Run.
#ifndef STAGECOACH_SERVICES_CLI_PICTURES_SEGMENT_PICTURE_H_
#define STAGECOACH_SERVICES_CLI_PICTURES_SEGMENT_PICTURE_H_

#include "absl/status/statusor.h"
#include "services/cli/pictures/picture_network.h"

namespace stagecoach {

// Ids are bytes: the network tells at most 256 classes apart. Of the picture's size, one channel.
absl::StatusOr<Picture> SegmentPicture(const PictureNetwork& network, const Picture& picture);

// Where parts of `part` begin that cover `length`, ascending.
std::vector<int64_t> PartStarts(int64_t length, int64_t part);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PICTURES_SEGMENT_PICTURE_H_
