// cross_entropy: a loss (operations/loss_types.h) of logits [..., classes] and targets (ids [...]): over rows
// whose target is not ignore_index the sum of -sum over classes j of q[j] * log softmax(logits)[j], with
// q = (1 - label_smoothing) * [j is the target] + label_smoothing / classes.
// Its gradient: (softmax(logits) - q) * scale, 0 in rows that are ignored.
// `weighted`: as operations/loss_types.h says, a weight for each target.
// Sums: loss; rows that count; with accuracy rows whose target has the largest logit; with top rows whose target
// is among the `top` largest. Of equal logits the lower class comes first; a target whose logit is not a number
// comes last, and behind each other logit that is none: logits that diverged count for nothing.
// A target that is neither a class nor ignore_index is a fault of the data: the loss is not a number then.
#ifndef STAGECOACH_OPERATIONS_CROSS_ENTROPY_H_
#define STAGECOACH_OPERATIONS_CROSS_ENTROPY_H_

#include <cstdint>
#include <limits>

namespace stagecoach {

struct CrossEntropyAttributes {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  bool accuracy = false;
  int64_t top = 0;  // 0: not counted; at most the classes
  bool gradient = false;
  bool weighted = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("label_smoothing", label_smoothing);
    visit.Count("ignore_index", ignore_index, std::numeric_limits<int32_t>::min(),
                std::numeric_limits<int32_t>::max());
    visit.Flag("accuracy", accuracy);
    visit.Count("top", top, 0);
    visit.Flag("gradient", gradient);
    visit.Flag("weighted", weighted);
  }
  int64_t sums() const { return 2 + (accuracy ? 1 : 0) + (top > 0 ? 1 : 0); }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_CROSS_ENTROPY_H_
