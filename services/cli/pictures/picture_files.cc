#include "services/cli/pictures/picture_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/files/file_system.h"
#include "stage/data/formats/class_folders.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

PictureFile Unreadable(const std::string& path, absl::Status problem) {
  return {.path = path, .below = "", .problem = std::move(problem)};
}

void FindBelow(const std::string& folder, std::vector<PictureFile>* files) {
  std::vector<PictureFile> found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const bool hidden = absl::StartsWith(at->path().filename().string(), ".");
    if (hidden && at->is_directory(gone)) at.disable_recursion_pending();
    if (hidden || at->is_directory(gone) || !IsPictureName(at->path().filename().string()))
      continue;
    found.push_back({.path = at->path().string(),
                     .below = at->path().lexically_relative(folder).string(),
                     .problem = absl::OkStatus()});
  }
  if (error) {
    found.push_back(Unreadable(
        folder, absl::UnavailableError(absl::StrCat(ShownName(folder), ": ", error.message()))));
  } else if (found.empty()) {
    found.push_back(Unreadable(
        folder, absl::NotFoundError(absl::StrCat(
                    ShownName(folder), ": no JPEG, PNG, TIFF or WebP file below this folder"))));
  }
  std::sort(found.begin(), found.end(),
            [](const PictureFile& a, const PictureFile& b) { return a.path < b.path; });
  files->insert(files->end(), found.begin(), found.end());
}

}  // namespace

std::vector<PictureFile> FindPictures(const std::vector<std::string>& named) {
  std::vector<PictureFile> files;
  for (const std::string& name : named) {
    std::error_code error;
    if (fs::is_directory(name, error)) {
      FindBelow(name, &files);
    } else if (!fs::exists(name, error)) {
      files.push_back(Unreadable(
          name, absl::NotFoundError(absl::StrCat(ShownName(name), ": no such file or folder"))));
    } else {
      files.push_back(
          {.path = name, .below = fs::path(name).filename().string(), .problem = absl::OkStatus()});
    }
  }
  return files;
}

absl::StatusOr<Picture> ReadPicture(const PictureFile& file, int64_t channels, bool upright) {
  RETURN_IF_ERROR(file.problem);
  std::error_code error;  // a link is followed: whoever names pictures here may read them
  const fs::path real = fs::canonical(file.path, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(ShownName(file.path), ": ", error.message()));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> opened,
                   PosixFileSystem()->Open(real.string()));
  if (opened->size() > kMostPictureBytes) {
    return absl::InvalidArgumentError(absl::StrCat(ShownName(file.path), ": ", opened->size(),
                                                   " bytes; at most ", kMostPictureBytes,
                                                   " are read"));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(opened->size()));
  RETURN_IF_ERROR(opened->Read(0, std::as_writable_bytes(std::span(bytes))));
  return Annotate(upright ? DecodeUpright(bytes, channels) : DecodePicture(bytes, channels),
                  ShownName(file.path));
}

}  // namespace stagecoach
