// cifar: CIFAR-10 or CIFAR-100 in its binary format, as in the archives cifar-10-binary.tar.gz and cifar-100-binary.tar.gz:
// files of records, a label (of CIFAR-100 two, the coarse one first) and 32 x 32 pixels, all red ones, all green ones, all
// blue ones. Trained on is data_batch_*.bin of a folder, in the order of the names, or train.bin, evaluated with
// test_batch.bin or test.bin; without it every tenth picture is held out. Labels that are no class and the rest of a file
// that is cut off are bad records.
#ifndef STAGECOACH_PLAN_DATA_CIFAR_H_
#define STAGECOACH_PLAN_DATA_CIFAR_H_

#include <string>

#include "plan/data/picture_fields.h"

namespace stagecoach {

// Of CIFAR-100: one of 100 classes, or of the 20 that these are sorted into.
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
