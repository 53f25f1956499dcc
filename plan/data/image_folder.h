// image_folder: JPEG, PNG, TIFF and WebP files in a folder for each class. The folders of `train`
// are the classes 0, 1, ... in the order of their names, which are bytes; `test` has the same.
// Pictures come in the order of their paths. Symbolic links out of the folder are bad records, as
// are files that are no whole picture. Without `test` every tenth picture is held out.
#ifndef STAGECOACH_PLAN_DATA_IMAGE_FOLDER_H_
#define STAGECOACH_PLAN_DATA_IMAGE_FOLDER_H_

#include <string>

#include "plan/data/picture_checks.h"

namespace stagecoach {

struct ImageFolderData {
  static constexpr const char* kKind = "image_folder";
  std::string train, test;
  OnBadRecord on_bad_record = OnBadRecord::kFail;
  PictureFields pictures;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("train", train, "must name the folder that has a folder for each class");
    visit.Text("test", test);
    visit.Choice("on_bad_record", on_bad_record, {"fail", "skip"});
    pictures.Visit(visit);
    visit.Flag("exif_orientation", pictures.exif_orientation);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_IMAGE_FOLDER_H_
