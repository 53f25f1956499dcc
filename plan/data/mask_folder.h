// mask_folder: JPEG, PNG, TIFF and WebP files with a mask each. A mask is a PNG of the picture's
// size, of grey or with a palette. Its numbers are the classes of the pixels. The mask of a/1.jpg
// is a/1.png below `masks`. Pictures come in the order of their paths. A file is a bad record if it
// is in one of the folders alone, or cannot be read. So is a link out of a folder, a mask of
// another size, and a mask with a number that is no class and not the objective's ignore_index.
// Without `test` every tenth picture is held out.
#ifndef STAGECOACH_PLAN_DATA_MASK_FOLDER_H_
#define STAGECOACH_PLAN_DATA_MASK_FOLDER_H_

#include <string>

#include "plan/data/picture_checks.h"

namespace stagecoach {

struct MaskFolderData {
  static constexpr const char* kKind = "mask_folder";
  std::string train, masks, test, test_masks;
  OnBadRecord on_bad_record = OnBadRecord::kFail;
  PictureFields pictures;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("train", train, "must name the folder of the pictures");
    visit.Text("masks", masks, "must name the folder of their masks");
    visit.Text("test", test);
    visit.Text("test_masks", test_masks);
    visit.Choice("on_bad_record", on_bad_record, {"fail", "skip"});
    pictures.Visit(visit);
    visit.Flag("exif_orientation", pictures.exif_orientation);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_MASK_FOLDER_H_
