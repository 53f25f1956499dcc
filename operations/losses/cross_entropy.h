// cross_entropy: a loss (operations/losses/loss_types.h) of logits [..., classes] and targets (ids
// [...]). It sums over rows whose target is not ignore_index:
//   -sum over classes j of q[j] * log softmax(logits)[j]
//   q = (1 - label_smoothing) * [j is the target] + label_smoothing / classes
// Its gradient: (softmax(logits) - q) * scale, 0 in rows that are ignored.
// `weighted`: a weight for each target, as in operations/losses/loss_types.h.
// Sums: loss; rows that count; with accuracy, rows whose target has the largest logit; with top,
// rows whose target is among the `top` largest. Of equal logits the lower class comes first. If the
// logit of a target is not a number, the target comes last. Any other logit that is not a number
// comes before the target. So diverged logits never count as right.
// With mean_iou, and with per_class in a call without gradient, a table [classes, 3] follows the
// sums. It counts rows whose target counts. Its columns for a class: rows of the class that were
// guessed right; rows with it as the target; rows with it as the guess. The guess is the class with
// the largest logit, the lowest of equal ones. A row with a logit that is not a number has no
// guess. These are whole numbers. Each target counts as one, whatever its weight, even 0, as in
// other programs.
// A target that is neither a class nor ignore_index is a fault of the data. Then the loss is not a
// number.
#ifndef STAGECOACH_OPERATIONS_LOSSES_CROSS_ENTROPY_H_
#define STAGECOACH_OPERATIONS_LOSSES_CROSS_ENTROPY_H_

#include <cstdint>
#include <limits>

namespace stagecoach {

// Keeps tables, reports and records small.
inline constexpr int64_t kMostCountedClasses = 1024;

struct CrossEntropyAttributes {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  bool accuracy = false;
  int64_t top = 0;  // 0: not counted; at most the number of classes
  bool gradient = false;
  bool weighted = false;
  bool mean_iou = false, per_class = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("label_smoothing", label_smoothing);
    visit.Count("ignore_index", ignore_index, std::numeric_limits<int32_t>::min(),
                std::numeric_limits<int32_t>::max());
    visit.Flag("accuracy", accuracy);
    visit.Count("top", top, 0);
    visit.Flag("gradient", gradient);
    visit.Flag("weighted", weighted);
    visit.Flag("mean_iou", mean_iou);
    visit.Flag("per_class", per_class);
  }
  int64_t sums() const { return 2 + (accuracy ? 1 : 0) + (top > 0 ? 1 : 0); }
  bool counts_classes() const { return mean_iou || (per_class && !gradient); }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_LOSSES_CROSS_ENTROPY_H_
