// cifar: CIFAR-10 in its binary format, as in the archive cifar-10-binary.tar.gz: files of records of 3073 bytes, a label
// and 32 x 32 pixels, all red ones, all green ones, all blue ones. Trained on is data_batch_*.bin of a folder,
// in the order of the names, evaluated with test_batch.bin; without it every tenth picture is held out.
#ifndef STAGECOACH_PLAN_DATA_CIFAR_H_
#define STAGECOACH_PLAN_DATA_CIFAR_H_

#include <string>

#include "plan/data/picture_fields.h"

namespace stagecoach {

struct CifarData {
  static constexpr const char* kKind = "cifar";
  std::string folder;
  PictureFields pictures;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("folder", folder, "must name the folder with data_batch_*.bin");
    pictures.Visit(visit);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_CIFAR_H_
