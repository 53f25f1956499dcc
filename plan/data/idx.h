// idx: images with a label each, in IDX files as MNIST and Fashion-MNIST have them, plain or gzip.
// Gives images, numbers [height, width, channels], and labels, one id each. A pixel x of 0 to 255
// becomes (x / 255 - mean) / deviation. If there are weights, each image also has one, by which the
// objective multiplies its loss. Images to train on may be shifted, mirrored and so on, as pictures
// are. Evaluation reads the test files, or without them the last 10 % of the samples, which are
// then not trained on.
#ifndef STAGECOACH_PLAN_DATA_IDX_H_
#define STAGECOACH_PLAN_DATA_IDX_H_

#include <string>

#include "plan/data/picture_checks.h"

namespace stagecoach {

struct IdxData {
  static constexpr const char* kKind = "idx";
  std::string images, labels;
  std::string test_images, test_labels;  // both or neither
  double mean = 0, deviation = 1;
  std::string weights, test_weights;            // of `images` and of `test_images`; empty: 1 each
  PictureFields pictures{.decode_threads = 0};  // only random changes and threads apply
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("images", images, "must name the IDX file of the images to train on");
    visit.Text("labels", labels, "must name the IDX file of their labels");
    visit.Text("test_images", test_images);
    visit.Text("test_labels", test_labels);
    visit.Between("mean", mean, -1e3, 1e3);
    visit.Between("deviation", deviation, 1e-6, 1e6);
    visit.Text("weights", weights);
    visit.Text("test_weights", test_weights);
    pictures.VisitDrawn(visit);
    visit.Count("decode_threads", pictures.decode_threads, 0, 256);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_IDX_H_
