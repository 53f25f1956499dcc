// cross_entropy: of logits [..., classes] and the ids of the right classes
// (operations/losses/cross_entropy.h).
#ifndef STAGECOACH_NETWORK_OBJECTIVES_CROSS_ENTROPY_H_
#define STAGECOACH_NETWORK_OBJECTIVES_CROSS_ENTROPY_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "operations/attributes.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {

struct CrossEntropySpec {
  static constexpr const char* kKind = "cross_entropy";
  // An id that no class has, so that every target counts.
  static constexpr int64_t kNothingIgnored = -1;

  double label_smoothing = 0;
  int64_t ignore_index = kNothingIgnored;
  int64_t top = 0;  // also counts targets among this many largest logits; 0: none
  bool no_accuracy = false;
  std::vector<double> class_weights;  // weight of a target of each class; empty: 1
  bool mean_iou = false;
  bool per_class = false;  // also measures each class, in evaluations
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("label_smoothing", label_smoothing);
    visit.Count("ignore_index", ignore_index, kNothingIgnored, std::numeric_limits<int32_t>::max());
    visit.Count("top", top, 0);
    visit.Flag("no_accuracy", no_accuracy);
    visit.Weights("class_weights", class_weights, kLeastWeight, kMostWeight, kMaxExtent);
    visit.Flag("mean_iou", mean_iou);
    visit.Flag("per_class", per_class);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_OBJECTIVES_CROSS_ENTROPY_H_
