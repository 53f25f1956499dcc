// mean_squared_error: a loss (operations/losses/loss_types.h) of a prediction and a target
// (float32) of its shape: the sum over all elements of (prediction - target)^2. Its gradient: 2 *
// (prediction - target) * scale. `weighted`: a weight for each sample, and so for its elements, as
// in operations/losses/loss_types.h.
// Sums: loss; elements, or their weight if weighted. The mean is their quotient, over the
// mini-batch as over a micro-batch.
#ifndef STAGECOACH_OPERATIONS_LOSSES_MEAN_SQUARED_ERROR_H_
#define STAGECOACH_OPERATIONS_LOSSES_MEAN_SQUARED_ERROR_H_

namespace stagecoach {

struct MeanSquaredErrorAttributes {
  bool gradient = false;
  bool weighted = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("gradient", gradient);
    visit.Flag("weighted", weighted);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_LOSSES_MEAN_SQUARED_ERROR_H_
