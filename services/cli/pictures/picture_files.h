// PictureFiles: the files that a user's words name, and the pictures in them.
// Threads: any.
// Errors:  all begin with the path. Of what is named: NOT_FOUND, a folder without pictures.
//          ReadPicture: as DecodePicture;
//          INVALID_ARGUMENT: larger than kMostPictureBytes; the file system's.
#ifndef STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_FILES_H_
#define STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

struct PictureFile {
  std::string path;      // as it was named, or below the folder that was
  std::string below;     // without that folder: "cats/1.jpg"; of a file its own name
  absl::Status problem;  // why there is nothing to read
};

// In the order of the words. Of a folder all files below it with a picture's ending
// (IsPictureName), by path; what begins with a dot is not looked at.
std::vector<PictureFile> FindPictures(const std::vector<std::string>& named);

// channels: 1 or 3.
absl::StatusOr<Picture> ReadPicture(const PictureFile& file, int64_t channels, bool upright);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_FILES_H_
