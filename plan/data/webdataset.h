// webdataset: pictures in tar files (shards), as WebDataset writes them. Members that follow each
// other with one name but for the extension are a sample. Here that is a picture (key.jpg, key.png,
// key.webp and so on) with key.cls, its class as a decimal number. Shards are all *.tar of a folder
// in the order of their names. Without `test` every tenth picture is held out.
#ifndef STAGECOACH_PLAN_DATA_WEBDATASET_H_
#define STAGECOACH_PLAN_DATA_WEBDATASET_H_

#include <string>

#include "plan/data/picture_checks.h"

namespace stagecoach {

struct WebDatasetData {
  static constexpr const char* kKind = "webdataset";
  std::string train, test;
  OnBadRecord on_bad_record = OnBadRecord::kFail;
  PictureFields pictures;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("train", train, "must name the folder with the tar files to train on");
    visit.Text("test", test);
    visit.Choice("on_bad_record", on_bad_record, {"fail", "skip"});
    pictures.Visit(visit);
    visit.Flag("exif_orientation", pictures.exif_orientation);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_WEBDATASET_H_
