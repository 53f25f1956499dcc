// PictureFiles: the files that a user's words name, and the pictures in them.
// Threads: any.
// Errors:  all begin with the path. Of a named path: NOT_FOUND, a folder without pictures.
//          ReadPicture: as DecodePicture; INVALID_ARGUMENT: larger than kMostPictureBytes; the file
//          system's.
#ifndef STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_FILES_H_
#define STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

struct PictureFile {
  std::string path;      // as it was named, or in the named folder
  std::string below;     // without that folder: "cats/1.jpg"; a single file's own name
  absl::Status problem;  // why there is no picture to read
};

// Pictures in the order of the words. A folder gives all files below it with a picture's ending
// (IsPictureName), by path, but skips names that begin with a dot.
std::vector<PictureFile> FindPictures(const std::vector<std::string>& named);

// channels: 1 or 3.
absl::StatusOr<Picture> ReadPicture(const PictureFile& file, int64_t channels, bool upright);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_FILES_H_
