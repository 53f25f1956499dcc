// cifar: CIFAR-10 or CIFAR-100 in its binary format, as in the archives cifar-10-binary.tar.gz and
// cifar-100-binary.tar.gz. A file has records: a label and 32 x 32 pixels. CIFAR-100 has two
// labels, the coarse one first. Of the pixels all red ones come first, then all green ones, then
// all blue ones. The job trains on data_batch_*.bin of a folder, in the order of the names, or on
// train.bin. It is evaluated with test_batch.bin or test.bin. Without that file every tenth picture
// is held out. Labels that are no class and the rest of a file that is cut off are bad records.
#ifndef STAGECOACH_PLAN_DATA_CIFAR_H_
#define STAGECOACH_PLAN_DATA_CIFAR_H_

#include <string>

#include "plan/data/picture_checks.h"

namespace stagecoach {

// Labels of CIFAR-100: one of 100 classes, or one of the 20 groups of these.
enum class CifarLabels { kFine, kCoarse };

struct CifarData {
  static constexpr const char* kKind = "cifar";
  std::string folder;
  CifarLabels labels = CifarLabels::kFine;
  OnBadRecord on_bad_record = OnBadRecord::kFail;
  PictureFields pictures;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("folder", folder, "must name the folder with data_batch_*.bin or train.bin");
    visit.Choice("labels", labels, {"fine", "coarse"});
    visit.Choice("on_bad_record", on_bad_record, {"fail", "skip"});
    pictures.Visit(visit);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_CIFAR_H_
